/**
 * Runs the tests and ends with a line for each failed one, `FAILED file > test: message`, and with `N passed, N failed`. Arguments are passed
 * to vitest: `npm test -- test/api`; `--subset` stands for the files in SUBSET. A file that does not load, a failed set-up and a run without tests count as failed.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { summarize } from './test-report.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = mkdtempSync(join(tmpdir(), 'agent-fleet-test-'));
const reportPath = join(folder, 'report.json');
const outsidePath = join(folder, 'outside.jsonl');
/** What CI runs on newer versions of Node: unit tests, the SDK, and one whole platform with messages through it. */
const SUBSET = [
  'test/contracts',
  'test/runtime',
  'test/deliveries',
  'test/db/batcher.test.ts',
  'test/knowledge/chunk/chunks.test.ts',
  'test/knowledge/parse',
  'test/messages/bus/bus-memory.test.ts',
  'test/messages/fingerprint.test.ts',
  'test/messages/form.test.ts',
  'test/sdk/client.test.ts',
  'test/sdk/connected-agent.test.ts',
  'test/sdk/hosted/hosted-agent.test.ts',
  'test/system/fast-path.test.ts',
];

try {
  const exitCode = await runVitest(
    process.argv.slice(2).flatMap((argument) => (argument === '--subset' ? subset() : argument)),
  );
  const outside = existsSync(outsidePath) ? readFileSync(outsidePath, 'utf8') : '';
  const { passed, failed } = summarize(readReport(), outside, exitCode, root);
  console.log(['', ...failed.map((test) => `FAILED ${test}`), `${passed} passed, ${failed.length} failed`].join('\n'));
  process.exitCode = failed.length > 0 ? 1 : 0;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Vitest passes over a name that fits no file. */
function subset() {
  const missing = SUBSET.filter((path) => !existsSync(join(root, path)));
  if (missing.length > 0) throw new Error(`SUBSET names what does not exist: ${missing.join(', ')}`);
  return SUBSET;
}

/** Resolves with vitest's exit code. Signals to this process are forwarded; vitest decides when to exit. */
function runVitest(args) {
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const reporter = join(root, 'scripts', 'test-report.mjs');
  const reporters = ['default', 'json', reporter].map((name) => `--reporter=${name}`);
  const env = { ...process.env, OUTSIDE_ERRORS_FILE: outsidePath };
  const options = { cwd: root, stdio: 'inherit', env };
  const child = spawn(
    process.execPath,
    [vitest, 'run', ...reporters, `--outputFile.json=${reportPath}`, ...args],
    options,
  );
  process.on('SIGINT', () => {}); // the terminal sends it to vitest as well
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

/** Reads vitest's report. Vitest writes none when it fails before it runs any file. */
function readReport() {
  try {
    return JSON.parse(readFileSync(reportPath, 'utf8'));
  } catch (error) {
    console.error(`no test report: ${error.message}`);
    return { numPassedTests: 0, testResults: [] };
  }
}
