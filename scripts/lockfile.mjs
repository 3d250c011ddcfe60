/**
 * Keeps the lock files installable everywhere. npm leaves out packages of other systems that the current registry (for example a mirror)
 * cannot serve, and `npm ci` then refuses the lock file on every machine. This script adds them from the exact versions that their parents
 * require; npm takes their integrity from the registry that installs them.
 *
 *     node scripts/lockfile.mjs           after `npm install <package>`: completes the files
 *     node scripts/lockfile.mjs --check   lists what is missing or names a registry, and fails
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const OS = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32'];
const CPU = ['arm64', 'arm', 'ia32', 'ppc64', 'riscv64', 's390x', 'x64'];
const LIBC = { gnu: 'glibc', gnueabihf: 'glibc', musl: 'musl', musleabihf: 'musl' };

/** Of the platform, of the frameworks that the adapters of the SDK are tested with, and of the versions of Postgres that it is tested on. */
const LOCK_FILES = [
  'package-lock.json',
  'sdk/adapters/package-lock.json',
  'scripts/test/postgres-versions/package-lock.json',
];

const root = join(import.meta.dirname, '..');
for (const file of LOCK_FILES) {
  const lock = JSON.parse(readFileSync(join(root, file), 'utf8'));
  const missing = missingOptionals(lock.packages);
  const machineBound = Object.keys(lock.packages).filter((key) => lock.packages[key].resolved?.startsWith('http'));
  if (process.argv.includes('--check')) check(file, missing, machineBound);
  else complete(file, lock, missing, machineBound);
}

function check(file, missing, machineBound) {
  for (const { name, version } of missing) console.log(`${file} lacks ${name}@${version}`);
  for (const key of machineBound) console.log(`${file} names a registry for ${key}`);
  if (missing.length + machineBound.length > 0) {
    console.log('run: node scripts/lockfile.mjs');
    process.exitCode = 1;
  }
}

function complete(file, lock, missing, machineBound) {
  for (const { name, version, dev } of missing) {
    lock.packages[`node_modules/${name}`] = lockEntry(name, version, dev);
  }
  for (const key of machineBound) delete lock.packages[key].resolved;
  const sorted = Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, 'en'));
  lock.packages = Object.fromEntries(sorted);
  writeFileSync(join(root, file), `${JSON.stringify(lock, null, 2)}\n`);
  console.log(`${file}: ${missing.length} packages of other platforms added`);
}

/** Optional dependencies with an exact version that have no entry. */
function missingOptionals(packages) {
  const found = [];
  for (const [key, entry] of Object.entries(packages)) {
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      const here = packages[`node_modules/${name}`] ?? packages[`${key}/node_modules/${name}`];
      if (here?.version === undefined && /^\d/.test(version)) found.push({ name, version, dev: entry.dev === true });
    }
  }
  return found;
}

/** The entry of a package such as `@swc/core-linux-arm-gnueabihf`: `os`, `cpu` and `libc` from its name, in npm's order. */
function lockEntry(name, version, dev) {
  const words = name.split('/').at(-1).split('-');
  const os = words.find((word) => OS.includes(word));
  const cpu = words.find((word) => CPU.includes(word));
  const libc = words.find((word) => word in LIBC);
  if (!os || !cpu) throw new Error(`no platform can be read from the name ${name}`);
  return { version, cpu: [cpu], ...(dev && { dev }), ...(libc && { libc: [LIBC[libc]] }), optional: true, os: [os] };
}
