/* How well the names of a place answer a query. No page is needed for it: `tests/site` runs it, too. */

const COMMON = new Set("a about all an and are as at be between by can do does for from how i in is it its many me mean means much my need needs number of on or our the there this to use using was what when where which who why with work works you your の は を に が で と も か へ や から まで より とは です ます する した して こと もの 何 なに どう なぜ どの 的 了 是 在 和 与 或 有 用 使用 对 从 到 把 怎么 怎样 如何 什么 为什么 哪 哪个 哪些 多少 这 那 吗 呢".split(" "));
const SECTIONS = 5; // of a page
/* What a place is, from what is about a word to code that only has it in its name. */
export const KINDS = ["page", "explained", "term", "row", "titled", "section", "definition"];

/* Scripts without spaces: their words are found by the browser's own dictionary, here and in the index alike. */
const SPACELESS = "[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}ー]";
const segmenter = Intl.Segmenter && new Intl.Segmenter(undefined, { granularity: "word" });
const RUN = new RegExp(`${SPACELESS}+`, "gu"), EITHER = `(?:${SPACELESS}|[、。，．・：；？！（）「」『』〜])`, GAP = new RegExp(`(?<=${EITHER}(?:</?mark>)?) +| +(?=(?:</?mark>)?${EITHER})`, "gu");
export const split = text => segmenter ? text.replace(RUN, run => ` ${[...segmenter.segment(run)].map(({ segment }) => segment).join(" ")} `) : text;
/* A query as the index has its words: those of a name in code are apart. */
export const spaced = query => split(query.replace(/[_.]+/g, " ")).trim();
export const joined = text => text.replace(GAP, "");

/* The words of a text: `MultiHeadAttention` has three, `n²` has two. Japanese needs no final mark (トークナイザー), with
   which its words would be told apart otherwise. */
export const wordsOf = text => split(text.replace(/(?<=[ァ-ヺ]{2})ー(?![ァ-ヺー])/g, "")).replace(/[²³⁰-⁹]/g, sign => ` ${sign.normalize("NFKC")}`)
  .replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2").toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/* One spelling of a word: British is American, and many are one. */
const fold = word => word.replace(/our/g, "or").replace(/(?<=..[^us])s$/, "").replace(/z/g, "s").replace(/c(?=e$)/, "s")
  .replace(/(?<=..[^e])e$/, "").replace(/(?<=..)y$/, "i");

/* A text's words as they are typed: a name in code is one. */
const runsOf = text => text.match(/[\p{L}\p{N}_-]+/gu) ?? [];

const telling = words => {
  const left = words.filter(word => !COMMON.has(word));
  return left.length ? left : words;
};

/* How many letters one must insert, delete, change or swap with their neighbour. */
export const distance = (a, b) => {
  let before = [], row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] !== b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) next[j] = Math.min(next[j], before[j - 2] + 1);
    }
    [before, row] = [row, next];
  }
  return row[b.length];
};

/* Whether a word is another one (1), begins it, is begun by most of it, or is a typing error for it; 0 if not. */
export const near = (word, other) => {
  if (word === other) return 1;
  const [short, long] = [word.length, other.length].sort((a, b) => a - b);
  if (short > 2 && (other.startsWith(word) || short >= .6 * long && word.startsWith(other))) return .6 + .4 * short / long;
  const errors = short > 7 ? 2 : short > 4 ? 1 : 0;
  return long - short <= errors && distance(word, other) <= errors ? .6 : 0;
};

/* A place that is ready to be asked for: the words of its names, and those around them. */
export const prepared = place => ({
  ...place,
  said: place.names.map(name => {
    const all = wordsOf(name), words = all.map(fold), own = telling(all).map(fold);
    const joined = all.slice(1).map((word, i) => fold(all[i] + word)), initials = own.length > 1 ? own.map(([first]) => first).join("") : null;
    return { wholes: [words.join(""), own.join(""), fold(all.join(""))], words, own, joined, initials };
  }),
  around: new Set(telling(wordsOf(`${["term", "row"].includes(place.kind) ? "" : place.page} ${place.text ?? ""}`)).map(fold)),
});

/* How well a name has a word: as one of its words, as two of them together (`feedforward`), or by its initials (MQA). */
const has = ({ words, joined, initials }, word) => joined.includes(word) || initials === word ? 1 : Math.max(0, ...words.map(other => near(word, other)));

/* What a query asks for: its words as they are said, each with a weight, more the fewer places have it in a name or, if
   none has, the fewer pages in their text: `pages` says how many have which word. */
export const asked = (places, query, pages = {}) => {
  const names = places.flatMap(({ said }) => said), known = word => names.some(({ wholes, joined }) => wholes.includes(word) || joined.includes(word));
  // An argument, `d_model`, is one word if a place has it so, and so is an abbreviation, `RoPE`.
  const every = runsOf(query).flatMap(run => {
    const said = wordsOf(run), one = fold(said.join("")), short = /^\p{Script=Latin}+$/u.test(run) && said.some(({ length }) => length < 3);
    return short || run.includes("_") && known(one) ? [{ run, said: run.toLowerCase(), word: one, one }] : said.map(each => ({ run, said: each, word: fold(each), one }));
  });
  const left = every.filter(({ said }) => !COMMON.has(said)), words = left.length ? left : every;
  return words.filter(({ word }, i) => words.findIndex(other => other.word === word) === i).map(each => {
    const found = places.filter(({ said }) => said.some(name => has(name, each.word))).length;
    return { ...each, found, weight: Math.log(1 + places.length / (1 + (found || SECTIONS * (pages[each.word] ?? 0)))) };
  });
};

/* The part of a query that is there: the share of the weights of its words. */
export const share = (words, there) => words.reduce((sum, each) => sum + each.weight * there(each.word, each), 0) / words.reduce((sum, { weight }) => sum + weight, 0);

/* The words of an argument count less where they are not together. */
const together = (run, one, known) => !run.includes("_") || known.includes(one) ? 1 : .6;

/* How much of a query a name has: `share`, or, at half its weight, the page's title or the term's definition; and its
   `score`: 2 for the name itself, less than the share if the name has other words, too. Nothing if most of it is not there. */
const answer = (place, wholes, words) => {
  if (place.said.some(name => name.wholes.some(whole => wholes.includes(whole)))) return { share: 1, score: 2 };
  return place.said.map(name => {
    const found = new Map(words.map(({ word, run, one }) => [word, has(name, word) * together(run, one, name.wholes)]));
    if (![...found.values()].some(Boolean) && !(place.text && words.length > 1)) return null;
    const there = share(words, word => found.get(word) || (place.around.has(word) ? .5 : 0));
    const asked = other => words.some(({ word }) => word === name.initials || near(word, other) || name.joined.some((pair, i) => pair === word && name.words.slice(i, i + 2).includes(other)));
    const named = name.own.filter(asked).length / name.own.length;
    return there >= .5 || named === 1 ? { share: there, score: there * (.6 + .4 * named), named } : null;
  }).reduce((best, other) => (other?.score ?? 0) > (best?.score ?? 0) ? other : best, null);
};

/* The places that answer a query, best first. */
export const ranked = (places, query, pages) => {
  const all = wordsOf(query), wholes = [all, telling(all)].map(some => some.map(fold).join(""));
  const words = asked(places, query, pages), explained = new Set(places.map(place => place.explained));
  const rank = ({ kind, names, url }) => KINDS.indexOf(kind !== "definition" ? kind : explained.has(url) ? "explained" : names.length > 1 ? "titled" : kind);
  const order = place => rank(place) + place.names[0].length / 1000;
  const found = places.map(place => ({ ...place, ...answer(place, wholes, words) })).filter(({ score }) => score > 0);
  for (const place of found) if (place.score < 2 && rank(place) === KINDS.length - 1) place.score *= .8;
  found.sort((a, b) => b.score - a.score || order(a) - order(b));
  // A class comes before its methods.
  const urls = new Set(found.map(({ url }) => url));
  return found.filter(({ url, score }) => score === 2 || !urls.has(url.slice(0, url.lastIndexOf("."))));
};

/* The share of a query that a text has, less for a long text, which has more words of any kind. */
export const covered = (text, words) => {
  const all = text.split(/\s+/), known = [...new Set(all.flatMap(runsOf).flatMap(run => { const parts = wordsOf(run); return [...parts, parts.join("")].map(fold); }))];
  const there = word => known.includes(word) ? 1 : known.some(other => near(word, other) || stem(word, other)) ? .8 : 0;
  return share(words, (word, { run, one }) => there(word) * together(run, one, known)) / (1 + all.length / 3000);
};

/* Whether a text that was found has one of the words. The index also finds texts that share a letter. */
export const answers = (marked, query) => {
  const asked = wordsOf(query).map(fold);
  return marked.flatMap(wordsOf).map(fold).some(word => asked.some(other => near(word, other) || stem(word, other)));
};
const stem = (a, b) => {
  let same = 0;
  while (same < a.length && a[same] === b[same]) same++;
  return same > 3 && same >= .65 * Math.min(a.length, b.length);
};

/* The query with each word that no place has replaced by another spelling of it, or by the nearest word that one has. */
export const corrected = (places, query) => {
  const all = new Set(places.flatMap(({ names, text, page }) => [...names, text ?? "", page].flatMap(wordsOf))), spelled = new Map([...all].map(word => [fold(word), word]));
  return wordsOf(query).map(word => {
    const other = all.has(word) ? word : spelled.get(fold(word));
    if (other || word.length < 5) return other ?? word;
    const near = [...all].filter(other => Math.abs(other.length - word.length) < 3).map(other => [distance(word, other), other]);
    const [errors, best] = near.sort((a, b) => a[0] - b[0])[0] ?? [9];
    return errors <= (word.length > 7 ? 2 : 1) ? best : word;
  }).join(" ");
};
