import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';

const root = join(import.meta.dirname, '..', '..');
const PIP = ['-m', 'pip', '--quiet', '--disable-pip-version-check'];

/** Runs a step of the set-up; what it says is shown, and a failure says which step it was. */
async function step(name: string, command: string, args: string[]): Promise<void> {
  process.stderr.write(`[python] ${name}\n`);
  const [code] = await once(spawn(command, args, { stdio: ['ignore', 2, 2] }), 'exit');
  if (code !== 0) throw new Error(`${name} failed with ${code}: ${command} ${args.join(' ')}`);
}

/** Makes an empty virtual environment. @returns its Python */
export async function emptyPython(): Promise<string> {
  const folder = mkdtempSync(join(inject('runDir'), 'python-'));
  await step('making a virtual environment', 'python3', ['-m', 'venv', folder]);
  return join(folder, 'bin', 'python');
}

/** @param args of `pip install` */
export const installPackages = (python: string, args: string[]): Promise<void> =>
  step(`installing ${args.at(-1)}`, python, [...PIP, 'install', ...args]);

/**
 * Builds the wheel of `python/` and installs it into an empty virtual environment.
 * @param extras of the package; their packages are those of `requirements-dev.txt`
 * @returns the Python of that environment
 */
export async function pythonWithPackage(extras: string[] = []): Promise<string> {
  const python = await emptyPython();
  const wheels = mkdtempSync(join(inject('runDir'), 'wheels-'));
  await step('building the wheel', python, [...PIP, 'wheel', '--no-deps', '-w', wheels, join(root, 'python')]);
  const pinned = extras.length > 0 ? ['-c', join(root, 'python', 'requirements-dev.txt')] : [];
  const package_ = extras.length > 0 ? `agent-fleet[${extras.join(',')}]` : 'agent-fleet';
  await installPackages(python, [...pinned, '--find-links', wheels, package_]);
  return python;
}
