import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

/**
 * A reporter of vitest's that writes into the file of the variable OUTSIDE_ERRORS_FILE what nobody has caught, which vitest's JSON report leaves
 * out. Each error is a line of JSON.
 */
export default class OutsideErrors {
  onTestRunEnd(_modules, errors) {
    for (const error of errors) noteOutsideError(error);
  }
}

/** Adds an error to that file, if there is one. @param {Error & { type?: string }} error @param {string} [type] what kind of error it is */
export function noteOutsideError(error, type = error.type) {
  const { name, message = String(error), stack, VITEST_TEST_PATH: file, VITEST_TEST_NAME: test } = error;
  const path = process.env.OUTSIDE_ERRORS_FILE;
  if (path) appendFileSync(path, `${JSON.stringify({ type, name, message, stack, file, test })}\n`);
}

/**
 * What a vitest run comes to.
 * @param {object} report vitest's JSON report
 * @param {string} outside the errors that `OutsideErrors` has written
 * @param {number} exitCode of vitest: without a failed test it tells of an error elsewhere
 * @param {string} root the checkout: files are named below it
 * @returns {{ passed: number, failed: string[] }} of each failed test the file, the full name and the first line of what was thrown. A file
 * that does not load or whose set-up fails, each error outside of the tests and a run without tests count as one each
 */
export function summarize(report, outside, exitCode, root) {
  const failed = report.testResults.flatMap((file) => {
    const path = relative(root, file.name);
    const tests = file.assertionResults.filter(({ status }) => status === 'failed');
    if (file.status === 'failed' && tests.length === 0) return [`${path}: ${firstLine(file.message)}`];
    return tests.map(
      ({ ancestorTitles, title, failureMessages }) =>
        `${[path, ...ancestorTitles, title].join(' > ')}: ${firstLine(failureMessages[0])}`,
    );
  });
  for (const line of outside.split('\n').filter(Boolean)) failed.push(describeOutside(JSON.parse(line), root));
  const passed = report.numPassedTests;
  if (failed.length === 0 && passed === 0) failed.push('no test was run');
  else if (failed.length === 0 && exitCode !== 0)
    failed.push(`an error outside of the tests (vitest ended with ${exitCode})`);
  return { passed, failed };
}

/** What was thrown and where, and which test ran then, which need not be its cause. */
function describeOutside({ type = 'Error', name = 'Error', message, stack = '', file, test }, root) {
  const frames = stripVTControlCharacters(stack)
    .split('\n')
    .filter((line) => /^\s+at /.test(line));
  const own = frames.find((line) => !/node_modules|node:/.test(line)) ?? frames[0] ?? '';
  const during = [file && relative(root, file), test].filter(Boolean).join(' > ');
  const where = [own.trim().replaceAll(`${root}/`, ''), during && `during ${during}`].filter(Boolean).join(', ');
  return `outside of the tests, ${type}: ${name}: ${firstLine(message)}${where && ` (${where})`}`;
}

function firstLine(text = '') {
  return stripVTControlCharacters(text).trim().split('\n', 1)[0];
}
