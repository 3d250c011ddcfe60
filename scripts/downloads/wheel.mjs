import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../run.mjs';

const DOWNLOAD = ['-m', 'pip', 'download', '--no-deps', '--only-binary=:all:', '--disable-pip-version-check', '-q'];

/**
 * Downloads a wheel from PyPI, without the packages that it needs.
 * @param {string} wheel `name==version`
 * @param {string} folder exists already, and is empty
 * @param {string[]} platform pip's options for a wheel of another platform than this one
 * @returns {Promise<string>} its path
 */
export async function downloadWheel(wheel, folder, platform = []) {
  await run('python3', [...DOWNLOAD, ...platform, '-d', folder, wheel]);
  const [name] = await readdir(folder);
  return join(folder, name);
}

/** Unpacks a wheel into a folder. */
export async function unpackWheel(path, folder) {
  await run('python3', ['-m', 'zipfile', '-e', path, folder]);
}
