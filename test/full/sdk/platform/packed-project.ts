import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inject } from 'vitest';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..', '..', '..');

/** The package as npm packs it, installed into a project that has nothing else. @returns the project's folder */
export async function emptyProjectWithPackage(name: string): Promise<string> {
  const project = join(inject('runDir'), name);
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{"private":true,"type":"module"}');
  const packed = await run('npm', ['pack', '--silent', '--pack-destination', project], { cwd: join(root, 'sdk') });
  const tarball = `./${packed.stdout.trim().split('\n').at(-1)}`;
  await run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', tarball], {
    cwd: project,
  });
  return project;
}
