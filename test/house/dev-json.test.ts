import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');

/** Prints a member of `dev.json` by the function that the page defines. */
function dev(page: string, cwd: string, dataDir?: string): string {
  const [definition = ''] = /^dev\(\) .*$/m.exec(readFileSync(join(root, page), 'utf8')) ?? [];
  const env = { PATH: process.env.PATH, ...(dataDir !== undefined && { FLEET_DATA_DIR: dataDir }) };
  return execFileSync('bash', ['-c', `${definition}\ndev base_url`], { cwd, env, encoding: 'utf8' }).trim();
}

function folderWith(...parts: string[]): string {
  const folder = mkdtempSync(join(inject('runDir'), 'dev-json-'));
  const inner = join(folder, ...parts);
  mkdirSync(inner, { recursive: true });
  writeFileSync(join(inner, 'dev.json'), JSON.stringify({ base_url: `http://${parts.at(-1)}` }));
  return folder;
}

test.each([
  ['README.md', ['.fleet']],
  ['docs/tutorial.md', ['agent-fleet-platform', '.fleet']],
])('the commands of %s find the platform of FLEET_DATA_DIR, and the one of the checkout without it', (page, parts) => {
  const folder = folderWith(...parts);
  expect(dev(page, folder)).toBe('http://.fleet');
  expect(dev(page, folder, join(folderWith('data'), 'data'))).toBe('http://data');
});
