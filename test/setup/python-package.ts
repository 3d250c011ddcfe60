import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';

const root = join(import.meta.dirname, '..', '..');

/** Runs a step of the set-up; what it says is shown, and a failure says which step it was. */
async function step(name: string, command: string, args: string[]): Promise<void> {
  process.stderr.write(`[python] ${name}\n`);
  const [code] = await once(spawn(command, args, { stdio: ['ignore', 2, 2] }), 'exit');
  if (code !== 0) throw new Error(`${name} failed with ${code}: ${command} ${args.join(' ')}`);
}

/**
 * Builds the wheel of `python/` and installs it into an empty virtual environment.
 * @param extras of the package; their packages are those of `requirements-dev.txt`
 * @returns the Python of that environment
 */
export async function pythonWithPackage(extras: string[] = []): Promise<string> {
  const folder = mkdtempSync(join(inject('runDir'), 'python-package-'));
  const python = join(folder, 'bin', 'python');
  await step('making a virtual environment', 'python3', ['-m', 'venv', folder]);
  const pip = ['-m', 'pip', '--quiet', '--disable-pip-version-check'];
  const wheels = join(folder, 'wheels');
  await step('building the wheel', python, [...pip, 'wheel', '--no-deps', '-w', wheels, join(root, 'python')]);
  const pinned = extras.length > 0 ? ['-c', join(root, 'python', 'requirements-dev.txt')] : [];
  const package_ = extras.length > 0 ? `agent-fleet[${extras.join(',')}]` : 'agent-fleet';
  await step(`installing ${package_}`, python, [...pip, 'install', ...pinned, '--find-links', wheels, package_]);
  return python;
}
