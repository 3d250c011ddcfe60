/**
 * Runs the tests and ends with a line for each failed one, `FAILED file > test: message`, and with `N passed, N failed`.
 *
 *     npm test                        the gate: about six minutes on two cores
 *     npm test -- test/api            files by their path, those of `npm run test:all` among them; options are passed to vitest
 *     npm test -- --save-durations    writes how long each file took into test/durations.json, which orders later runs
 *     npm run test:all                everything: see scripts/test-all.mjs, which passes --all
 *
 * A whole run is two vitest processes on the same servers: files that start platforms, two at a time, beside all others, three at a time. With
 * --all it is one at a time beside two: those of test/full/ start many processes each, and together they ran into their time limits.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastGreen } from './test/last-green.mjs';
import { endLeftovers, RUN } from './test/leftovers.mjs';
import { knownFlaky } from './test/quarantine.mjs';
import { readReport } from './test/report.mjs';
import { startServers } from './test/servers.mjs';

const root = join(import.meta.dirname, '..');
const DURATIONS = join(root, 'test', 'durations.json');
const SLOWEST = 30;

const given = process.argv.slice(2);
const isAll = given.includes('--all');
const saves = given.includes('--save-durations');
const args = given.filter((argument) => !['--all', '--save-durations'].includes(argument));
const isGate = !isAll && args.every((argument) => argument.startsWith('-'));
/** A whole run has two vitest processes at once. Named files run in one, which finds out itself what they are. */
const LANES = [
  { projects: ['gate-platform', ...(isAll ? ['full-platform'] : [])], workers: isAll ? 1 : 2 },
  { projects: ['gate', ...(isAll ? ['full'] : [])], workers: isAll ? 2 : 3 },
];
const folder = mkdtempSync(join(tmpdir(), 'agent-fleet-test-'));

/** SIGTERM has come: vitest ends, and nothing is run again. */
let isStopped = false;
process.on('SIGINT', () => {}); // the terminal sends it to vitest as well
process.on('SIGTERM', () => {
  isStopped = true;
});

try {
  if (isGate)
    console.log(`The gate: about six minutes on two cores. All tests: npm run test:all (${lastGreen(root)}).`);
  const servers = await startServers(root, folder);
  try {
    await runAll(servers);
  } finally {
    const left = endLeftovers(folder);
    if (left > 0) console.log(`${left} processes that the tests had left were ended`);
    await servers.stop();
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function runAll(servers) {
  const env = {
    ...process.env,
    [RUN]: folder,
    TEST_RUN: isAll ? 'all' : 'gate',
    TEST_SERVERS_OWN: process.env.TEST_DATABASE_URL ? '' : 'yes',
    TEST_DATABASE_URL: servers.postgresUrl,
    TEST_TEMPORAL_ADDRESS: servers.temporalAddress,
    ...(isAll && { TEST_SEEDS: 'random' }),
  };
  const lanes = isGate || isAll ? LANES : [{ projects: [], workers: 2 }];
  const runs = await Promise.all(lanes.map((lane, index) => runLane(lane, index, env)));
  const files = runs.flatMap((run) => run.files).sort((one, other) => other.seconds - one.seconds);
  const passed = runs.reduce((sum, run) => sum + run.passed, 0);
  const failures = runs.flatMap((run) => run.failures);
  const repeated = await runFailedAgain(failures, env);
  const failed = failures.filter(({ file, once }) => once || !repeated.get(file)).map(({ text }) => text);
  const flaky = failures.filter(({ file, once }) => !once && repeated.get(file)).map(({ text }) => text);
  if (isStopped) failed.push('the run was stopped');
  else if (passed === 0 && failed.length === 0) failed.push('no test was run');

  printSlowest(files);
  if (saves) saveDurations(files);
  for (const text of flaky) console.log(`FLAKY ${text}${knownFlaky(root, text)}`);
  for (const text of failed) console.log(`FAILED ${text}`);
  console.log(`${passed + flaky.length} passed, ${failed.length} failed`);
  process.exitCode = failed.length > 0 ? 1 : 0;
}

async function runLane({ projects, workers }, index, env) {
  const options = projects.map((name) => `--project=${name}`);
  return runVitest(join(folder, `lane-${index}.jsonl`), [...options, ...args], workers, env);
}

/**
 * Each file with failures that may be of chance, alone, once more; seeds are the same.
 * @returns {Promise<Map<string, boolean>>} whether the file passed then
 */
async function runFailedAgain(failures, env) {
  const files = new Set(failures.filter(({ once }) => !once).map(({ file }) => file));
  const results = new Map();
  for (const [index, file] of [...files].entries()) {
    if (isStopped) break;
    console.log(`\n${file} failed; running it once more, alone`);
    const report = await runVitest(join(folder, `again-${index}.jsonl`), [file], 1, env);
    results.set(file, report.failures.length === 0);
  }
  return results;
}

/** Resolves with what the run came to. Signals to this process are forwarded; vitest decides when to exit. */
async function runVitest(reportFile, options, workers, env) {
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const reporters = ['--reporter=default', `--reporter=${join(root, 'scripts', 'test', 'report.mjs')}`];
  const child = spawn(process.execPath, [vitest, 'run', ...reporters, ...options], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'], // two at once: lines, and no live display
    env: { ...env, TEST_REPORT_FILE: reportFile, TEST_WORKERS: String(workers) },
  });
  child.stdout.pipe(process.stdout, { end: false });
  child.stderr.pipe(process.stderr, { end: false });
  const forward = () => child.kill('SIGTERM');
  process.on('SIGTERM', forward);
  const exitCode = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve(code ?? 1));
  });
  process.off('SIGTERM', forward);
  return readReport(reportFile, exitCode, root);
}

function printSlowest(files) {
  if (files.length < 2) return;
  console.log(`\nThe slowest of ${files.length} files, in seconds:`);
  for (const { file, seconds } of files.slice(0, SLOWEST)) console.log(`${seconds.toFixed(1).padStart(8)}  ${file}`);
  console.log('');
}

/** Keeps what is known of files that this run left out and that are still there. */
function saveDurations(files) {
  const known = existsSync(DURATIONS) ? JSON.parse(readFileSync(DURATIONS, 'utf8')) : {};
  const all = { ...known, ...Object.fromEntries(files.map(({ file, seconds }) => [file, seconds])) };
  const sorted = Object.entries(all).filter(([file]) => existsSync(join(root, file)));
  sorted.sort(([one], [other]) => one.localeCompare(other));
  writeFileSync(DURATIONS, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`);
}
