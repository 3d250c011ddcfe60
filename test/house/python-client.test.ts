import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');

test('the newest entry of the package’s changelog is for its version', () => {
  const versionIn = (path: string, pattern: RegExp) => pattern.exec(readFileSync(join(root, path), 'utf8'))?.[1];
  expect(versionIn('python/CHANGELOG.md', /^(?:## |Becomes )(\d+\.\d+\.\d+)/m)).toBe(
    versionIn('python/src/agent_fleet/version.py', /__version__ = "([^"]+)"/),
  );
});
