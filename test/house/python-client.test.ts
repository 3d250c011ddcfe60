import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openApiDocument } from '../../contracts/api/openapi.js';

const root = join(import.meta.dirname, '..', '..');
const { generate } = (await import(join(root, 'scripts', 'python-client', 'generate.mjs'))) as {
  generate(document: object): Record<string, string>;
};

test.each(Object.entries(generate(openApiDocument(''))))(
  'the Python client has every operation of the contracts: %s (refresh it with `npm run python:client`)',
  (name, text) => {
    const path = join(root, 'python', 'src', 'agent_fleet', 'client', 'generated', name);
    expect(existsSync(path) && readFileSync(path, 'utf8')).toBe(text);
  },
);

test('the newest entry of the package’s changelog is for its version', () => {
  const versionIn = (path: string, pattern: RegExp) => pattern.exec(readFileSync(join(root, path), 'utf8'))?.[1];
  expect(versionIn('python/CHANGELOG.md', /^(?:## |Becomes )(\d+\.\d+\.\d+)/m)).toBe(
    versionIn('python/src/agent_fleet/version.py', /__version__ = "([^"]+)"/),
  );
});
