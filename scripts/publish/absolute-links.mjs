import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { pathToFileURL } from 'node:url';

const root = join(import.meta.dirname, '..', '..');
/** A link or an image; code is matched first, so that what looks like a link in it stays. */
const LINK = /^```[\s\S]*?^```$|`[^`\n]*`|\]\(((?![a-z]+:|#)[^)\s]+)\)/gm;

/**
 * Makes the relative links of a document absolute.
 * @param {string} document Markdown
 * @param {{ folder: string, url: string }} from the folder of the document in the repository, and the address of the repository's files
 */
export function absoluteLinks(document, { folder, url }) {
  return document.replace(LINK, (match, target) => {
    if (target === undefined) return match;
    const path = posix.join(folder, target);
    if (!existsSync(join(root, path.split('#', 1)[0]))) throw new Error(`There is no ${path}.`);
    return `](${url}/${path})`;
  });
}

// PyPI and npm show the README of a package without the files that it links to: node scripts/publish/absolute-links.mjs sdk URL
if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [, , folder, url] = process.argv;
  if (!folder || !url?.startsWith('https://'))
    throw new Error('usage: node scripts/publish/absolute-links.mjs FOLDER URL');
  const readme = join(root, folder, 'README.md');
  writeFileSync(readme, absoluteLinks(readFileSync(readme, 'utf8'), { folder, url }));
}
