import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, inject, test } from 'vitest';
import { gate } from '../setup/until.js';

interface PrepareLock {
  withPrepareLock<T>(root: string, work: () => Promise<T>, say: (line: string) => void): Promise<T>;
}

const scripts = join(import.meta.dirname, '..', '..', 'scripts');
const { withPrepareLock } = (await import(pathToFileURL(join(scripts, 'prepare-lock.mjs')).href)) as PrepareLock;

const quietly = <T>(root: string, work: () => Promise<T>) => withPrepareLock(root, work, () => {});

const checkout = () => mkdtempSync(join(inject('runDir'), 'prepare-lock-'));

test('two commands that prepare one checkout do it one after the other', async () => {
  const root = checkout();
  const steps: string[] = [];
  const secondWaits = gate();
  const first = quietly(root, async () => {
    steps.push('first begins');
    await secondWaits.promise;
    steps.push('first ends');
  });
  const second = withPrepareLock(
    root,
    async () => void steps.push('second'),
    () => secondWaits.open(),
  );
  await Promise.all([first, second]);
  expect(steps).toEqual(['first begins', 'first ends', 'second']);
  expect(existsSync(join(root, '.prepare.lock'))).toBe(false);
});

test('the lock of a process that died is taken over', async () => {
  const root = checkout();
  const dead = spawnSync(process.execPath, ['-e', '']).pid;
  writeFileSync(join(root, '.prepare.lock'), `${dead} ${hostname()}\n`);
  expect(await quietly(root, async () => 'done')).toBe('done');
});

test('a step that fails leaves no lock behind', async () => {
  const root = checkout();
  const failing = quietly(root, () => Promise.reject(new Error('no network')));
  await expect(failing).rejects.toThrow('no network');
  expect(existsSync(join(root, '.prepare.lock'))).toBe(false);
});
