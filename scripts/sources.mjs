import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

/** Root folders of which no file is put into `dist/` as it is; names that start with a dot are excluded as well. Vite builds `console/`. */
const OUTSIDE = new Set([
  'console',
  'dist.tmp',
  'dist.old',
  'bench',
  'docs',
  'coverage',
  'scripts',
  'python',
  'deploy',
]);
/** Folders that are not part of it wherever they are: `sdk/` has a `dist` of its own, and its adapters have their frameworks. */
const NEVER = new Set(['node_modules', 'dist', 'test']);
/** Extensions of files that are copied to `dist/`; `.ts` files are transpiled. */
const COPIED = new Set(['.sql', '.html', '.css', '.js', '.svg']);
/** Other files that affect the build. */
const SETTINGS = ['package.json', 'package-lock.json', 'tsconfig.json', 'scripts/build.mjs', 'scripts/sources.mjs'];

/**
 * The sources of `dist/`, as sorted paths relative to `root`.
 * @param {string} root the checkout
 * @returns {{ compiled: string[], copied: string[] }}
 */
export function listSources(root) {
  const compiled = [];
  const copied = [];
  for (const entry of readdirSync(root, { withFileTypes: true })) {
    if (entry.name.startsWith('.') || OUTSIDE.has(entry.name) || NEVER.has(entry.name)) continue;
    const files = entry.isDirectory() ? filesBelow(root, entry.name) : [entry.name];
    for (const file of files) {
      if (isCompiled(file)) compiled.push(file);
      else if (entry.isDirectory() && COPIED.has(extname(file))) copied.push(file);
    }
  }
  return { compiled: compiled.sort(), copied: copied.sort() };
}

/** The sources of the console, which takes types and pure functions from the contracts. */
const consoleSources = (root) => [...filesBelow(root, 'console'), ...filesBelow(root, 'contracts')].sort();

/**
 * A digest of all files that affect `dist/`. Uses contents and not times, so that switching branches back needs no build.
 * @param {string} root the checkout
 */
export function fingerprint(root) {
  const { compiled, copied } = listSources(root);
  return digestOf(root, [...compiled, ...copied, ...filesBelow(root, 'console').sort(), ...SETTINGS]);
}

/**
 * A digest of all files that affect `dist/console/`.
 * @param {string} root the checkout
 */
export function consoleFingerprint(root) {
  return digestOf(root, [...consoleSources(root), 'package-lock.json']);
}

function digestOf(root, files) {
  const hash = createHash('sha256');
  for (const file of files) {
    const content = readFileSync(join(root, file));
    hash.update(`${file}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

/**
 * Whether `dist/` was built from the current sources.
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
    if (!entry.isDirectory()) files.push(path);
    else if (!NEVER.has(entry.name)) files.push(...filesBelow(root, path));
  }
  return files;
}
