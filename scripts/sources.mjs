import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

/** Folders at the root that never reach `dist/`. Names that start with a dot do not either. */
const OUTSIDE = new Set([
  'node_modules',
  'dist',
  'dist.tmp',
  'dist.old',
  'test',
  'bench',
  'docs',
  'coverage',
  'scripts',
]);
/** Files copied to `dist/` as they are; `.ts` is transpiled. */
const COPIED = new Set(['.sql', '.html', '.css', '.js', '.svg']);
/** What else decides how `dist/` comes out. */
const SETTINGS = ['package.json', 'package-lock.json', 'tsconfig.json', 'scripts/build.mjs', 'scripts/sources.mjs'];

/**
 * The files that `dist/` is made of, as paths relative to `root`, sorted.
 * @param {string} root the checkout
 * @returns {{ compiled: string[], copied: string[] }}
 */
export function listSources(root) {
  const compiled = [];
  const copied = [];
  for (const entry of readdirSync(root, { withFileTypes: true })) {
    if (entry.name.startsWith('.') || OUTSIDE.has(entry.name)) continue;
    const files = entry.isDirectory() ? filesBelow(root, entry.name) : [entry.name];
    for (const file of files) {
      if (isCompiled(file)) compiled.push(file);
      else if (entry.isDirectory() && COPIED.has(extname(file))) copied.push(file);
    }
  }
  return { compiled: compiled.sort(), copied: copied.sort() };
}

/**
 * A digest of every file that decides what is in `dist/`. Contents, not times: switching branches back costs no build.
 * @param {string} root the checkout
 */
export function fingerprint(root) {
  const { compiled, copied } = listSources(root);
  const hash = createHash('sha256');
  for (const file of [...compiled, ...copied, ...SETTINGS]) {
    const content = readFileSync(join(root, file));
    hash.update(`${file}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

/**
 * True when `dist/` was built from the sources as they are now.
 * @param {string} root the checkout
 */
export function isBuilt(root) {
  const stamp = join(root, 'dist', '.stamp');
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === fingerprint(root);
}

function isCompiled(file) {
  return file.endsWith('.ts') && !file.endsWith('.d.ts') && !file.endsWith('.config.ts');
}

function filesBelow(root, folder) {
  const files = [];
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) files.push(...filesBelow(root, path));
    else files.push(path);
  }
  return files;
}
