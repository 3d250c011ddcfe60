import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, inject, test } from 'vitest';

interface Read {
  passed: number;
  failures: { file?: string; text: string; once: boolean }[];
}
interface TestReport {
  readReport(path: string, exitCode: number, root: string): Read;
}

const root = join(import.meta.dirname, '..', '..');
const VITEST = join(root, 'node_modules', 'vitest', 'vitest.mjs');
const REPORTER = join(root, 'scripts', 'test', 'report.mjs');
const { readReport } = (await import(pathToFileURL(REPORTER).href)) as TestReport;
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
  // The larger one runs first. Its promise is rejected when another file runs, in the same process.
  'leaves.test.js': `
    test('leaves a promise', () => {
      void new Promise((_, reject) => { globalThis.rejectLate = () => reject(new RangeError('late')); });
    }); ${'//'.repeat(2_000)}`,
  'disturbed.test.js': `
    test('is not to blame', async () => {
      globalThis.rejectLate();
      await new Promise((resolve) => setTimeout(resolve));
    });`,
};

test('each failed test is named in a line of its own, and so is what nobody has caught and a file that does not load or set up', () => {
  const folder = mkdtempSync(join(inject('runDir'), 'report-'));
  mkdirSync(join(folder, 'a'));
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
  const path = join(folder, 'report.jsonl');
  const args = ['run', '--globals', '--no-isolate', '--maxWorkers=1', '--root', folder, `--reporter=${REPORTER}`];
  const { status } = spawnSync(process.execPath, [VITEST, ...args], {
    env: { ...process.env, TEST_REPORT_FILE: path },
  });
  const { passed, failures } = readReport(path, status ?? 1, folder);
  const failed = failures.map(({ text }) => text);
  expect(failures.every(({ once }) => once)).toBe(true); // none of these started a platform
  expect(passed).toBe(4);
  expect(failed.sort()).toEqual([
    'a/mixed.test.js > sums > are right: AssertionError: expected 2 to be 3 // Object.is equality',
    'a/mixed.test.js > throws: Error: first line',
    // What one file leaves behind fails the run, at its place, and not the file that runs by then.
    expect.stringMatching(
      /^outside of the tests, Unhandled Rejection: RangeError: late \(at .*leaves\.test\.js:3:\d+\)?, during disturbed\.test\.js > is not to blame\)$/,
    ),
    expect.stringMatching(
      /^outside of the tests, Unhandled Rejection: TypeError: nobody waits \(at .*unhandled\.test\.js:3:\d+\)?, during unhandled\.test\.js > goes on\)$/,
    ),
    'set-up.test.js: Error: no server',
    'unloadable.test.js: Error: does not load',
  ]);
});

const failedOn = (project: string, tags: string[]) => {
  const tests = [{ name: 'fails', state: 'failed', message: 'Error: no', tags }];
  return { file: 'a.test.ts', project, seconds: 1, tests, errors: [] };
};
const CLOSED = { outside: { message: 'closed' } };
const mayBeChance = { file: 'a.test.ts', text: 'a.test.ts > fails: Error: no', once: false };

test.each([
  ['nothing to blame', [], 1, [{ text: 'an error outside of the tests (vitest ended with 1)', once: true }]],
  ['an error outside', [CLOSED], 1, [{ text: 'outside of the tests, Error: Error: closed', once: true }]],
  ['a test on a platform', [failedOn('gate-platform', [])], 1, [mayBeChance]],
  ['one of loss or order', [failedOn('gate-platform', ['once'])], 1, [{ ...mayBeChance, once: true }]],
  ['one of the record', [failedOn('gate', [])], 1, [{ ...mayBeChance, once: true }]],
  ['success', [], 0, []],
])('a run that ends with %s says what failed, and whether it may be run again', (_what, lines, exitCode, failures) => {
  const folder = mkdtempSync(join(inject('runDir'), 'report-'));
  const path = join(folder, 'report.jsonl');
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  expect(readReport(path, exitCode, folder).failures).toEqual(failures);
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
