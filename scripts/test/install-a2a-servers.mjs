/**
 * Installs the official A2A SDK for Python, 0.3 and 1.x, for the tests that send messages to its servers: `npm run test:a2a-servers`. Each version
 * has a virtual environment of its own in the user's cache. Afterwards `npm run test:all` runs those tests too.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { userCacheDir } from '../../dist/runtime/cache-dir.js';
import { run } from '../run.mjs';
import { A2A_VERSIONS, environmentOf, requirementsOf } from './a2a-servers.mjs';

const print = (line) => process.stderr.write(`[a2a servers] ${line}\n`);

async function install(version) {
  const target = environmentOf(version, userCacheDir());
  if (existsSync(target)) return;
  await mkdir(dirname(target), { recursive: true });
  const staging = await mkdtemp(join(dirname(target), '.a2a-server-'));
  try {
    print(`installing a2a-sdk ${version} for Python …`);
    await run('python3', ['-m', 'venv', staging]);
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--only-binary=:all:'];
    await run(join(staging, 'bin', 'python'), [...pip, '-r', requirementsOf(version)]);
    await rename(staging, target);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

try {
  for (const version of A2A_VERSIONS) await install(version);
} catch (error) {
  print(`failed: ${error.message}`);
  process.exitCode = 1;
}
