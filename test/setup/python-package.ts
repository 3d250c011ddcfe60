import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';

const root = join(import.meta.dirname, '..', '..');

/** Runs a step of the set-up; what it says is shown, and a failure says which step it was. */
async function step(name: string, command: string, args: string[]): Promise<void> {
  process.stderr.write(`[python] ${name}\n`);
  const [code] = await once(spawn(command, args, { stdio: ['ignore', 2, 2] }), 'exit');
  if (code !== 0) throw new Error(`${name} failed with ${code}: ${command} ${args.join(' ')}`);
}

/** Builds the wheel of `python/` and installs it into an empty virtual environment. @returns the Python of that environment */
export async function pythonWithPackage(): Promise<string> {
  const folder = join(inject('runDir'), 'python-package');
  const python = join(folder, 'bin', 'python');
  if (existsSync(folder)) throw new Error('one file of the run makes the environment');
  await step('making a virtual environment', 'python3', ['-m', 'venv', folder]);
  const pip = ['-m', 'pip', '--quiet', '--disable-pip-version-check'];
  const wheels = join(folder, 'wheels');
  await step('building the wheel', python, [...pip, 'wheel', '--no-deps', '-w', wheels, join(root, 'python')]);
  await step('installing the wheel', python, [...pip, 'install', '--find-links', wheels, 'agent-fleet']);
  return python;
}
