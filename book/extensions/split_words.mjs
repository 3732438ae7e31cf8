// Copies the pages of a site with a space between the words of scripts that have none, such as Japanese, so that
// Pagefind finds words. node split_words.mjs SITE COPY RANKING
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const [site, copy, ranking] = process.argv.slice(2);
const { split } = await import(pathToFileURL(ranking));

for (const name of readdirSync(site, { recursive: true })) {
  if (!name.endsWith(".html")) continue;
  const page = readFileSync(join(site, name), "utf-8").replace(/>([^<]+)</g, (_, text) => `>${split(text)}<`);
  mkdirSync(dirname(join(copy, name)), { recursive: true });
  writeFileSync(join(copy, name), page);
}
