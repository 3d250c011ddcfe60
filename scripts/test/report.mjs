import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

/**
 * A vitest reporter that writes a line of JSON for each finished file, and for each error that nobody has caught, into the file that the variable
 * TEST_REPORT_FILE names. So a run that is killed still says what it has seen.
 */
export default class TestReport {
  onTestModuleEnd(module) {
    const root = module.project.vitest.config.root;
    const { setupDuration, collectDuration, duration } = module.diagnostic();
    const tests = [...module.children.allTests()].map((test) => {
      const { state, errors = [] } = test.result();
      return { name: test.fullName, state, tags: test.tags, message: firstLine(errors[0]) };
    });
    const seconds = Math.round((setupDuration + collectDuration + duration) / 100) / 10;
    const errors = [module, ...module.children.allSuites()].flatMap((suite) => suite.errors()).map(firstLine);
    write({ file: relative(root, module.moduleId), project: module.project.name, seconds, tests, errors });
  }

  onTestRunEnd(_modules, errors) {
    for (const error of errors) noteOutsideError(error);
  }
}

/** Adds an error outside of the tests to that file. @param {Error & { type?: string }} error @param {string} [type] what kind of error it is */
export function noteOutsideError(error, type = error.type) {
  const { name, message = String(error), stack, VITEST_TEST_PATH: file, VITEST_TEST_NAME: test } = error;
  write({ outside: { type, name, message, stack, file, test } });
}

function write(line) {
  const path = process.env.TEST_REPORT_FILE;
  if (path) appendFileSync(path, `${JSON.stringify(line)}\n`);
}

/**
 * What a vitest run comes to.
 * @param {string} path the file of `TestReport`; absent when vitest failed before it ran any file
 * @param {number} exitCode of vitest: without a failed test it tells of an error elsewhere
 * @param {string} root the checkout
 * @returns {{ passed: number, files: { file: string, seconds: number }[], failures: { file?: string, text: string, once: boolean }[] }} `text`
 * has file, full name and the first line of what was thrown; `once` where the failure counts and is never run again. A file that does not load or
 * whose set-up fails, and each error outside of the tests, count as one each
 */
export function readReport(path, exitCode, root) {
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean).map(JSON.parse) : [];
  const files = lines.filter(({ file }) => file);
  const failures = files.flatMap(failuresOf);
  for (const { outside } of lines) {
    if (outside) failures.push({ text: describeOutside(outside, root), once: true });
  }
  if (failures.length === 0 && exitCode !== 0) {
    failures.push({ text: `an error outside of the tests (vitest ended with ${exitCode})`, once: true });
  }
  const passed = files.flatMap(({ tests }) => tests).filter(({ state }) => state === 'passed').length;
  return { passed, files: files.map(({ file, seconds }) => ({ file, seconds })), failures };
}

/** Only what was tried on a platform of its own may have failed by chance. */
function failuresOf({ file, project, tests, errors }) {
  const isPlatform = project.endsWith('platform');
  const failed = tests.filter(({ state }) => state === 'failed');
  const inTests = failed.map(({ name, message, tags }) => ({
    file,
    text: `${file} > ${name}: ${message}`,
    once: !isPlatform || tags.includes('once'),
  }));
  if (inTests.length > 0) return inTests;
  return errors.slice(0, 1).map((message) => ({ file, text: `${file}: ${message}`, once: !isPlatform }));
}

/** What was thrown and where, and which test ran then, which need not be its cause. */
function describeOutside({ type = 'Error', name = 'Error', message, stack = '', file, test }, root) {
  const frames = stripVTControlCharacters(stack)
    .split('\n')
    .filter((line) => /^\s+at /.test(line));
  const own = frames.find((line) => !/node_modules|node:/.test(line)) ?? frames[0] ?? '';
  const during = [file && relative(root, file), test].filter(Boolean).join(' > ');
  const where = [own.trim().replaceAll(`${root}/`, ''), during && `during ${during}`].filter(Boolean).join(', ');
  return `outside of the tests, ${type}: ${name}: ${firstLine({ message })}${where && ` (${where})`}`;
}

/** @param {{ name?: string, message?: string } | undefined} error */
function firstLine(error) {
  if (!error) return '';
  const text = error.name ? `${error.name}: ${error.message}` : (error.message ?? '');
  return stripVTControlCharacters(text).trim().split('\n', 1)[0];
}
