import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { localModelFolder } from './knowledge/embedding/local-model.js';
import { userCacheDir } from './runtime/cache-dir.js';
import { A2A_VERSIONS, environmentOf } from './scripts/test/a2a-servers.mjs';
import { PGVECTOR_FOLDER, PGVECTOR_PROGRAM } from './scripts/test/pgvector.mjs';
import { postgresVersionsFolder } from './scripts/test/postgres-versions.mjs';
import { HeaviestFirst } from './test/setup/heaviest-first.js';
import { type Level, testLevels } from './test/setup/levels.js';

/** Test files for programs that a bare machine may lack. CI has them all; elsewhere they are left out, and said so. */
const NEEDS: Record<string, string[]> = {
  'redis-server': [
    'test/full/api/rate-limit-redis.test.ts',
    'test/erasure/reports.test.ts',
    'test/full/knowledge/roles.test.ts',
    'test/mesh/deregister.test.ts',
    'test/mesh/tools/tool-nodes.test.ts',
    'test/messages/bus/bus-redis.test.ts',
    'test/full/messages/model/scripts.test.ts',
    'test/full/system/campaign.test.ts',
    'test/full/system/operator-commands.test.ts',
    'test/full/system/faults.test.ts',
    'test/full/system/elsewhere-deaths.test.ts',
    'test/system/elsewhere.test.ts',
    'test/full/system/load-balancer/load-balancer.test.ts',
    'test/full/system/load-balancer/rolling-restart.test.ts',
    'test/full/system/nodes-roles.test.ts',
    'test/full/system/nodes.test.ts',
    'test/full/system/upgrade.test.ts',
  ],
  mvn: ['test/full/embedded/time-skipping.test.ts', 'test/full/messages/approvals/days.test.ts'],
  python3: [
    'test/full/examples/python.test.ts',
    'test/full/sdk/python/frameworks.test.ts',
    'test/full/sdk/python/python.test.ts',
    'test/full/system/load-balancer/load-balancer.test.ts',
  ],
  chromium: readdirSync('test/full/console')
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `test/full/console/${name}`)
    .concat(['approve', 'client', 'end-users'].map((name) => `test/full/browser/${name}.test.ts`)),
};

/** Test files for what a command installs, with a file or folder that is there when it did. */
const NEEDS_INSTALLED: Record<string, { file: string; tests: string[] }> = {
  'npm run test:a2a-servers': {
    file: environmentOf(A2A_VERSIONS.at(-1) ?? '', userCacheDir()),
    tests: ['test/full/a2a/python-servers.test.ts'],
  },
  'npm run models': {
    file: join(localModelFolder({}), 'installed.json'),
    tests: ['test/full/knowledge/embedding/local.test.ts', 'test/full/knowledge/search/quality-model.test.ts'],
  },
  'npm run test:pgvector': {
    file: join(userCacheDir(), PGVECTOR_FOLDER, PGVECTOR_PROGRAM),
    tests: ['test/full/knowledge/search/pgvector.test.ts', 'test/full/system/restore.test.ts'],
  },
  'npm run test:postgres': {
    file: postgresVersionsFolder(userCacheDir()),
    tests: ['test/full/db/postgres-versions.test.ts'],
  },
  'npm run frameworks': {
    file: 'sdk/adapters/node_modules/.package-lock.json',
    tests: [
      ...['ai', 'langgraph', 'mastra', 'openai-agents'].map((name) => `sdk/adapters/test/${name}.test.ts`),
      'test/full/sdk/platform/adapters-doc.test.ts',
    ],
  },
};

/** Test files that mount a disk of their own for the run's Postgres. */
const MOUNTS = ['test/full/system/outages/full-disk.test.ts'];

/** Whether this process may mount, which root in a container often may not, and starts the run's Postgres itself. */
function mayMount(): boolean {
  const hasOwn = Boolean(process.env.TEST_SERVERS_OWN) || !process.env.TEST_DATABASE_URL;
  return hasOwn && spawnSync('unshare', ['--mount', 'true']).status === 0;
}

function isInstalled(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, program)));
}

/** Outside of the gate: see test/README.md. */
const isFull = (file: string) => !/^test\/(?!full\/)/.test(file);

const leftOut: (readonly [what: string, files: string[]])[] = [
  ...Object.entries(NEEDS).filter(([program]) => !isInstalled(program)),
  ...Object.entries(NEEDS_INSTALLED).flatMap(([command, { file, tests }]) =>
    existsSync(file) ? [] : [[command, tests] as const],
  ),
];
const missing = leftOut.filter(([, files]) => process.env.TEST_RUN === 'all' || !files.every(isFull));
if (process.env.CI && missing.length > 0) throw new Error(`CI lacks ${missing.map(([what]) => what).join(', ')}`);
if (!mayMount()) leftOut.push(['the right to mount a disk', MOUNTS]); // also in CI, whose machine may not have it
// Each project reads this file again.
for (const [what, files] of process.env.TEST_LEFT_OUT ? [] : leftOut)
  process.stderr.write(`not here: ${what}; left out: ${files.join(', ')}\n`);
process.env.TEST_LEFT_OUT = 'said';

const root = import.meta.dirname;
const left = new Set(leftOut.flatMap(([, files]) => files));
const levels = [...testLevels(root)].filter(([file]) => !left.has(file));
/** The files of one run at these levels. A project that has none keeps a name that fits nothing: an empty list would include every file. */
function project(name: string, full: boolean, wanted: Level[]) {
  const files = levels.filter(([file, level]) => isFull(file) === full && wanted.includes(level)).map(([file]) => file);
  return { extends: true as const, test: { name, include: files.length > 0 ? files : ['none'] } };
}

/** Real servers are shared by all files (see the global set-up); each file has a database of its own. */
export default defineConfig({
  test: {
    projects: [
      project('gate', false, ['unit', 'record']),
      project('gate-platform', false, ['platform']),
      project('full', true, ['unit', 'record']),
      project('full-platform', true, ['platform']),
    ],
    tags: [{ name: 'once', description: 'Loss, duplication, order or tenants: a failure is never run again.' }],
    sequence: { sequencer: HeaviestFirst },
    expect: { requireAssertions: true },
    globalSetup: ['./test/setup/global.ts'],
    setupFiles: ['./test/setup/fast-check.ts'],
    pool: 'forks',
    isolate: false, // loading the sources anew for each file takes as long as a fifth of the tests; none keeps state in a module
    maxWorkers: Number(process.env.TEST_WORKERS ?? 2), // the option of the command line does not reach the projects
    testTimeout: 60_000,
    hookTimeout: 120_000,
    teardownTimeout: 60_000,
  },
});
