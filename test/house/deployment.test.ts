import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { Settings } from '../../runtime/config.js';

const root = join(import.meta.dirname, '..', '..');
const { listSources } = (await import(pathToFileURL(join(root, 'scripts', 'sources.mjs')).href)) as {
  listSources(root: string): { compiled: string[]; copied: string[] };
};
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

test('docker-compose.yml gives the platform only settings that it reads', () => {
  const block = /environment: &platform-environment\n((?: {4}\S.*\n)+)/.exec(read('docker-compose.yml'))?.[1] ?? '';
  const names = [...block.matchAll(/^ {4}([A-Z_]+):/gm)].map((match) => match[1]);
  expect(names).toContain('FLEET_SECRET_KEY');
  const forOperators = Object.keys(Settings.shape).filter((name) => /^OTEL_|_RETENTION_DAYS$/.test(name));
  expect(forOperators.length).toBeGreaterThan(8);
  expect(names).toEqual(expect.arrayContaining(forOperators));
  expect(Object.keys(Settings.shape)).toEqual(expect.arrayContaining(names));
});

test('the image sets only settings that the platform reads', () => {
  const line = /^ENV (.*)$/m.exec(read('Dockerfile'))?.[1] ?? '';
  const names = line.split(' ').map((pair) => pair.split('=')[0]);
  expect(names).toContain('FLEET_DATA_DIR');
  expect([...Object.keys(Settings.shape), 'NODE_ENV']).toEqual(expect.arrayContaining(names));
});

test('the image is built from all sources', () => {
  const patterns = read('.dockerignore')
    .split('\n')
    .filter((line) => line && !line.startsWith('#') && !line.startsWith('!'))
    .map(
      (line) =>
        new RegExp(
          `^${line
            .replaceAll('.', '\\.')
            .replace('**/', '(.*/)?')
            .replaceAll(/(?<!\.)\*/g, '[^/]*')}(/|$)`,
        ),
    );
  const { compiled, copied } = listSources(root);
  expect(compiled.length).toBeGreaterThan(300);
  const leftOut = [...compiled, ...copied].filter((path) => patterns.some((pattern) => pattern.test(path)));
  expect(leftOut).toEqual([]);
});
