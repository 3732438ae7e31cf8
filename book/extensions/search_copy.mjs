// Copies the pages of a site as Pagefind reads them best: a heading has the anchor of its section, which so is found by
// itself, and there is a space between the words of scripts that have none, such as Japanese.
// node search_copy.mjs SITE COPY RANKING LEFT_OUT, a folder that is not copied, or several
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { pathToFileURL } from "node:url";

const [site, copy, ranking, ...leftOut] = process.argv.slice(2);
const { split } = await import(pathToFileURL(ranking));

for (const name of readdirSync(site, { recursive: true })) {
  if (!name.endsWith(".html") || leftOut.includes(name.split(sep)[0])) continue;
  const page = readFileSync(join(site, name), "utf-8")
    .replace(/(<section[^>]* id="([^"]+)"[^>]*>\s*(?:<span id="[^"]*"><\/span>)*\s*<h\d)(?=[ >])(?![^>]* id=)/g, '$1 id="$2"')
    .replace(/>([^<]+)</g, (_, text) => `>${split(text)}<`);
  mkdirSync(dirname(join(copy, name)), { recursive: true });
  writeFileSync(join(copy, name), page);
}
