/**
 * Installs the versions of Postgres that the platform supports beside its own, by their own lock file, into the user's cache: `npm run test:postgres`.
 * Afterwards `npm run test:all` starts a platform on each.
 */
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { userCacheDir } from '../../dist/runtime/cache-dir.js';
import { npmCi } from '../npm-ci.mjs';
import { POSTGRES_VERSIONS, postgresVersions, postgresVersionsFolder } from './postgres-versions.mjs';

const print = (line) => process.stderr.write(`[postgres versions] ${line}\n`);
const target = postgresVersionsFolder(userCacheDir());

async function install() {
  await mkdir(dirname(target), { recursive: true });
  const staging = await mkdtemp(join(dirname(target), '.postgres-versions-'));
  try {
    print(`installing Postgres ${POSTGRES_VERSIONS.join(', ')} (npm ci, 200 MB on disk) …`);
    for (const file of ['package.json', 'package-lock.json'])
      await copyFile(join(postgresVersions, file), join(staging, file));
    await npmCi(staging, ['--include=optional']);
    await rename(staging, target);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

try {
  if (!existsSync(target)) await install();
} catch (error) {
  print(`failed: ${error.message}`);
  process.exitCode = 1;
}
