import { relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

/**
 * What a vitest run comes to.
 * @param {object} report vitest's JSON report
 * @param {number} exitCode of vitest: without a failed test it tells of an error elsewhere
 * @param {string} root the checkout: files are named below it
 * @returns {{ passed: number, failed: string[] }} of each failed test the file, the full name and the first line of what was thrown. A file
 * that does not load or whose set-up fails, an error outside of the tests and a run without tests count as one each
 */
export function summarize(report, exitCode, root) {
  const failed = report.testResults.flatMap((file) => {
    const path = relative(root, file.name);
    const tests = file.assertionResults.filter(({ status }) => status === 'failed');
    if (file.status === 'failed' && tests.length === 0) return [`${path}: ${firstLine(file.message)}`];
    return tests.map(
      ({ ancestorTitles, title, failureMessages }) =>
        `${[path, ...ancestorTitles, title].join(' > ')}: ${firstLine(failureMessages[0])}`,
    );
  });
  const passed = report.numPassedTests;
  if (failed.length === 0 && passed === 0) failed.push('no test was run');
  else if (failed.length === 0 && exitCode !== 0)
    failed.push(`an error outside of the tests (vitest ended with ${exitCode})`);
  return { passed, failed };
}

function firstLine(text = '') {
  return stripVTControlCharacters(text).trim().split('\n', 1)[0];
}
