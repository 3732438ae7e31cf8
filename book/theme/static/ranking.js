/* How well the names of a place answer a query. No page is needed for it: `tests/site` runs it, too. */

const COMMON = new Set("a an and are as at be by can do does for from how i in is it its many me much my number of on or our the there this to use was what when where which who why with you your".split(" "));
export const KINDS = ["page", "definition", "section", "term"];

/* Scripts without spaces: their words are found by the browser's own dictionary, here and in the index alike. */
const SPACELESS = "[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}ー]";
const segmenter = Intl.Segmenter && new Intl.Segmenter(undefined, { granularity: "word" });
const RUN = new RegExp(`${SPACELESS}+`, "gu"), EITHER = `(?:${SPACELESS}|[、。，．・：；？！（）「」『』〜])`, GAP = new RegExp(`(?<=${EITHER}(?:</?mark>)?) +| +(?=(?:</?mark>)?${EITHER})`, "gu");
export const split = text => segmenter ? text.replace(RUN, run => ` ${[...segmenter.segment(run)].map(({ segment }) => segment).join(" ")} `) : text;
export const joined = text => text.replace(GAP, "");

/* The words of a text: `MultiHeadAttention` has three, `n²` has two. */
export const wordsOf = text => split(text).replace(/[²³⁰-⁹]/g, sign => ` ${sign.normalize("NFKC")}`)
  .replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2").toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

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

/* Whether a word is another one (1), begins it or is begun by it, or is a typing error for it; 0 if not. */
export const near = (word, other) => {
  if (word === other) return 1;
  const [short, long] = [word.length, other.length].sort((a, b) => a - b);
  if (short > 2 && (word.startsWith(other) || other.startsWith(word))) return .6 + .4 * short / long;
  const errors = short > 7 ? 2 : short > 4 ? 1 : 0;
  return long - short <= errors && distance(word, other) <= errors ? .6 : 0;
};

/* A place that is ready to be asked for: the words of its names, and those around them. */
export const prepared = place => ({
  ...place,
  said: place.names.map(name => {
    const words = wordsOf(name), pairs = words.slice(1).map((word, i) => words[i] + word);
    return { whole: words.join(""), words, own: telling(words), pairs };
  }),
  around: [...new Set(telling(wordsOf(`${place.kind === "term" ? "" : place.page} ${place.text ?? ""}`)))],
});

/* 2 for a name itself. Otherwise the share of the query's words that a name has, or, at half their weight, the page's
   title or the term's definition; less if the name has other words, too. 0 if most of the query is not there. */
export const score = (place, query) => {
  const words = wordsOf(query), whole = words.join(""), asked = [...new Set(telling(words))];
  if (place.said.some(name => name.whole === whole)) return 2;
  return Math.max(...place.said.map(({ words, own, pairs }) => {
    const found = asked.map(word => Math.max(0, ...words.map(other => near(word, other)), ...pairs.map(pair => pair === word ? 1 : 0)));
    if (!found.some(Boolean) && !(place.text && asked.length > 1)) return 0;
    const context = asked.map((word, i) => found[i] || (place.around.includes(word) || place.around.includes(word.replace(/s$/, "")) ? .5 : 0));
    const sum = all => all.reduce((a, b) => a + b, 0);
    const named = own.filter(other => asked.some(word => near(word, other)) || pairs.some(pair => pair.includes(other) && asked.includes(pair)));
    const answered = sum(context) / asked.length, named_ = named.length / own.length;
    return answered >= .5 || named_ === 1 ? answered * (.6 + .4 * named_) : 0;
  }));
};

/* The places that answer a query, best first, each with its score. */
export const ranked = (places, query) => {
  const order = ({ kind, names: [name] }) => KINDS.indexOf(kind) + name.length / 1000;
  const found = places.map(place => ({ ...place, score: score(place, query) })).filter(place => place.score > 0);
  found.sort((a, b) => b.score - a.score || order(a) - order(b));
  // A class comes before its methods.
  const all = new Set(found.map(({ url }) => url));
  return found.filter(({ url, score }) => score === 2 || !all.has(url.slice(0, url.lastIndexOf("."))));
};

/* Whether a text that was found has one of the words. The index also finds texts that share a letter. */
export const answers = (marked, query) => {
  const asked = wordsOf(query);
  return marked.flatMap(wordsOf).some(word => asked.some(other => near(word, other) || stem(word, other)));
};
const stem = (a, b) => {
  let same = 0;
  while (same < a.length && a[same] === b[same]) same++;
  return same > 3 && same >= .6 * Math.min(a.length, b.length);
};

/* The query with each word that no place has replaced by the nearest word that one has. */
export const corrected = (places, query) => {
  const known = new Set(places.flatMap(({ said, around }) => [...said.flatMap(({ words }) => words), ...around]));
  return wordsOf(query).map(word => {
    if (known.has(word) || word.length < 5) return word;
    const near = [...known].filter(other => Math.abs(other.length - word.length) < 3).map(other => [distance(word, other), other]);
    const [errors, best] = near.sort((a, b) => a[0] - b[0])[0] ?? [9];
    return errors <= (word.length > 7 ? 2 : 1) ? best : word;
  }).join(" ");
};
