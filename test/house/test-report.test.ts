import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

interface TestReport {
  summarize(report: object, exitCode: number, root: string): { passed: number; failed: string[] };
}

const root = join(import.meta.dirname, '..', '..');
const VITEST = join(root, 'node_modules', 'vitest', 'vitest.mjs');
const { summarize } = (await import(pathToFileURL(join(root, 'scripts', 'test-report.mjs')).href)) as TestReport;
const FILES = {
  'a/mixed.test.js': `
    describe('sums', () => test('are right', () => expect(1 + 1).toBe(3)));
    test('passes', () => {});
    test('throws', () => { throw new Error('first line\\nsecond line'); });`,
  'set-up.test.js': "beforeAll(() => { throw new Error('no server'); }); test('is not run', () => {});",
  'unloadable.test.js': "throw new Error('does not load');",
};

test('each failed test is named in a line of its own, files that do not load or set up too', () => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-fleet-report-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'a'));
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
  const reportPath = join(folder, 'report.json');
  const args = ['run', '--globals', '--root', folder, '--reporter=json', `--outputFile.json=${reportPath}`];
  const { status } = spawnSync(process.execPath, [VITEST, ...args]);
  const { passed, failed } = summarize(JSON.parse(readFileSync(reportPath, 'utf8')), status ?? 1, folder);
  expect(passed).toBe(1);
  expect(failed.sort()).toEqual([
    'a/mixed.test.js > sums > are right: AssertionError: expected 2 to be 3 // Object.is equality',
    'a/mixed.test.js > throws: Error: first line',
    'set-up.test.js: no server',
    'unloadable.test.js: does not load',
  ]);
});

test.each([
  [{ numPassedTests: 3, testResults: [] }, 0, []],
  [{ numPassedTests: 3, testResults: [] }, 1, ['an error outside of the tests (vitest ended with 1)']],
  [{ numPassedTests: 0, testResults: [] }, 0, ['no test was run']],
])('%j with exit code %i fails with %j', (report, exitCode, failed) => {
  expect(summarize(report, exitCode, '/').failed).toEqual(failed);
});
