import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

interface TestReport {
  summarize(report: object, outside: string, exitCode: number, root: string): { passed: number; failed: string[] };
}

const root = join(import.meta.dirname, '..', '..');
const VITEST = join(root, 'node_modules', 'vitest', 'vitest.mjs');
const REPORTER = join(root, 'scripts', 'test-report.mjs');
const { summarize } = (await import(pathToFileURL(REPORTER).href)) as TestReport;
const FILES = {
  'a/mixed.test.js': `
    describe('sums', () => test('are right', () => expect(1 + 1).toBe(3)));
    test('passes', () => {});
    test('throws', () => { throw new Error('first line\\nsecond line'); });`,
  'set-up.test.js': "beforeAll(() => { throw new Error('no server'); }); test('is not run', () => {});",
  'unloadable.test.js': "throw new Error('does not load');",
  'unhandled.test.js': `
    test('goes on', async () => {
      void Promise.reject(new TypeError('nobody waits\\nfor this'));
      await new Promise((resolve) => setTimeout(resolve));
    });`,
};

test('each failed test is named in a line of its own, and so is what nobody has caught and a file that does not load or set up', () => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-fleet-report-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'a'));
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
  const reportPath = join(folder, 'report.json');
  const outsidePath = join(folder, 'outside.jsonl');
  const reporters = ['--reporter=json', `--outputFile.json=${reportPath}`, `--reporter=${REPORTER}`];
  const env = { ...process.env, OUTSIDE_ERRORS_FILE: outsidePath };
  const { status } = spawnSync(process.execPath, [VITEST, 'run', '--globals', '--root', folder, ...reporters], { env });
  const report = JSON.parse(readFileSync(reportPath, 'utf8')) as object;
  const { passed, failed } = summarize(report, readFileSync(outsidePath, 'utf8'), status ?? 1, folder);
  expect(passed).toBe(2);
  expect(failed.sort()).toEqual([
    'a/mixed.test.js > sums > are right: AssertionError: expected 2 to be 3 // Object.is equality',
    'a/mixed.test.js > throws: Error: first line',
    expect.stringMatching(
      /^outside of the tests, Unhandled Rejection: TypeError: nobody waits \(at .*unhandled\.test\.js:3:\d+\)?, during unhandled\.test\.js > goes on\)$/,
    ),
    'set-up.test.js: no server',
    'unloadable.test.js: does not load',
  ]);
});

test.each([
  [{ numPassedTests: 3, testResults: [] }, '', 0, []],
  [{ numPassedTests: 3, testResults: [] }, '', 1, ['an error outside of the tests (vitest ended with 1)']],
  [{ numPassedTests: 3, testResults: [] }, '{"message":"closed"}\n', 1, ['outside of the tests, Error: Error: closed']],
  [{ numPassedTests: 0, testResults: [] }, '', 0, ['no test was run']],
])('%j with %j outside of the tests and exit code %i fails with %j', (report, outside, exitCode, failed) => {
  expect(summarize(report, outside, exitCode, '/').failed).toEqual(failed);
});

test('a machine without redis-server leaves out every test file that starts one', () => {
  const files = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' }).map((path) => `test/${path}`);
  const starting = files.filter(
    (path) => path.endsWith('.test.ts') && /from '.*\/redis-server\.js'/.test(readFileSync(join(root, path), 'utf8')),
  );
  expect(starting.length).toBeGreaterThan(5);
  const config = readFileSync(join(root, 'vitest.config.ts'), 'utf8');
  expect(starting.filter((path) => !config.includes(`'${path}'`))).toEqual([]);
});
