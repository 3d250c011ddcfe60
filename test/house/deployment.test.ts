import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { readConfig, Settings } from '../../runtime/config.js';

const root = join(import.meta.dirname, '..', '..');
const { listSources } = (await import(pathToFileURL(join(root, 'scripts', 'sources.mjs')).href)) as {
  listSources(root: string): { compiled: string[]; copied: string[] };
};
const SECRETS = join(root, 'deploy', 'compose', 'secrets.sh');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

/** What containers do not need: their ports are published, and Temporal runs in a container of its own. The last is for tests. */
const NOT_IN_COMPOSE = ['FLEET_API_PORT', 'FLEET_MESH_PORT', 'FLEET_METRICS_PORT', 'TEMPORAL_CLI_PATH', 'FLEET_CLOCKS'];
const imageSettings = () =>
  (/^ENV (.*)$/m.exec(read('Dockerfile'))?.[1] ?? '').split(' ').map((pair) => pair.split('=')[0] ?? '');

test('docker-compose.yml passes every setting, and none that the platform does not read', () => {
  const block = /environment: &platform-environment\n((?: {4}\S.*\n)+)/.exec(read('docker-compose.yml'))?.[1] ?? '';
  const passed = [...block.matchAll(/^ {4}([A-Z_]+): (.*)$/gm)].map(([, name = '', value = '']) => ({ name, value }));
  const own = ['DATABASE_URL', 'TEMPORAL_ADDRESS', 'TEMPORAL_NAMESPACE', 'REDIS_URL']; // of what compose starts
  const wanted = Object.keys(Settings.shape).filter((name) => ![...NOT_IN_COMPOSE, ...imageSettings()].includes(name));
  expect(passed.map(({ name }) => name).sort()).toEqual(wanted.sort());
  const fixed = passed.filter(({ name, value }) => !value.includes(`\${${name}:`)).map(({ name }) => name);
  expect(fixed.sort()).toEqual(own.sort());
});

test('compose has no password of its own: they are made once, at the first start', () => {
  const compose = read('docker-compose.yml');
  for (const name of ['FLEET_SECRET_KEY', 'POSTGRES_PASSWORD', 'VALKEY_PASSWORD'])
    expect(compose).not.toContain(`\${${name}:-`);
  const folder = mkdtempSync(join(tmpdir(), 'compose-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, '.env');
  writeFileSync(file, 'SMTP_URL=smtp://mail.example.com'); // without the end of its line
  const make = () => {
    execFileSync(SECRETS, [file]);
    return readFileSync(file, 'utf8');
  };
  const first = make();
  const made =
    /^SMTP_URL=.*\nFLEET_SECRET_KEY=(.{44})\nPOSTGRES_PASSWORD=([0-9a-f]{48})\nVALKEY_PASSWORD=([0-9a-f]{48})\n$/;
  const [, key = '', postgres, valkey] = made.exec(first) ?? [];
  expect(readConfig({ FLEET_SECRET_KEY: key }).FLEET_SECRET_KEY).toBe(key);
  expect(postgres).not.toBe(valkey);
  expect(make()).toBe(first);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const alone = join(folder, 'alone');
  execFileSync(SECRETS, [alone]);
  expect(statSync(alone).mode & 0o777).toBe(0o600);
});

test('the image sets only settings that the platform reads', () => {
  const names = imageSettings();
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
