import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The versions of Postgres that the platform supports beside the one that it brings. */
export const POSTGRES_VERSIONS = [15, 16, 17];

/** The packages of these versions, with their checksums. */
export const postgresVersions = join(import.meta.dirname, 'postgres-versions');

/** Where they are installed, one folder for each lock file. @param cacheDir the user's cache folder */
export function postgresVersionsFolder(cacheDir) {
  const lock = readFileSync(join(postgresVersions, 'package-lock.json'));
  return join(cacheDir, `postgres-versions-${createHash('sha256').update(lock).digest('hex').slice(0, 16)}`);
}

/** The package of a version for this machine. */
export function postgresPackage(version, cacheDir) {
  const name = `postgres-${version}-${process.platform}-${process.arch}`;
  return join(postgresVersionsFolder(cacheDir), 'node_modules', name);
}
