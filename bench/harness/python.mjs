/** A Python with the `agent-fleet` package of this checkout. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '../../scripts/run.mjs';
import { print } from './report.mjs';

const PACKAGE = fileURLToPath(new URL('../../python', import.meta.url));
const PROGRAMS = ['python3', 'python3.14', 'python3.13', 'python3.12', 'python3.11'];
/** What the package needs; `requires-python` of its pyproject.toml says the same. */
const IS_NEW_ENOUGH = 'import sys; sys.exit(sys.version_info < (3, 11))';

/** The first program on the PATH that is Python 3.11 or newer; undefined when there is none. */
export function findPython() {
  return PROGRAMS.find((program) => {
    try {
      execFileSync(program, ['-c', IS_NEW_ENOUGH], { stdio: 'ignore' });
      return true;
    } catch {
      return false;
    }
  });
}

/**
 * Installs the package and what it needs into a new virtual environment.
 * @param {string} program of `findPython`
 * @param {string} folder is created
 * @returns {Promise<string>} the Python of the environment
 */
export async function installPackage(program, folder) {
  print(`installing python/ with ${program} …`);
  const startedMs = performance.now();
  await run(program, ['-m', 'venv', folder]);
  const python = join(folder, 'bin', 'python');
  await run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', PACKAGE]);
  print(`python/ is installed (${((performance.now() - startedMs) / 1_000).toFixed(0)} s)`);
  return python;
}
