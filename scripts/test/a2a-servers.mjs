import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The official A2A SDK for Python in the two versions that the tests serve agents with. */
export const A2A_VERSIONS = ['0.3', '1'];

const folder = join(import.meta.dirname, '..', '..', 'test', 'full', 'a2a', 'python');

/** What a version needs, pinned. */
export function requirementsOf(version) {
  return join(folder, `requirements-${version}.txt`);
}

/** The virtual environment of a version, one for each list of requirements. @param cacheDir the user's cache folder */
export function environmentOf(version, cacheDir) {
  const digest = createHash('sha256')
    .update(readFileSync(requirementsOf(version)))
    .digest('hex');
  return join(cacheDir, `a2a-server-${version}-${digest.slice(0, 16)}`);
}
