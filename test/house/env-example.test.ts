import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readConfig, Settings } from '../../runtime/config.js';

const TEXT = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8');
const LINES = [...TEXT.matchAll(/^#?([A-Z][A-Z0-9_]+)=(.*)$/gm)].map(([, name = '', value = '']) => ({ name, value }));
const NAMES = Object.keys(Settings.shape);

test('.env.example names every setting once, and nothing else', () => {
  expect(LINES.map(({ name }) => name).sort()).toEqual([...NAMES].sort());
});

test('.env.example shows the defaults', () => {
  const defaults: Record<string, unknown> = Settings.parse({});
  const scalar = NAMES.filter((name) => ['string', 'number'].includes(typeof defaults[name]));
  expect(scalar.length).toBeGreaterThan(10);
  for (const name of scalar) {
    const line = LINES.find((one) => one.name === name);
    expect({ name, value: line?.value }).toEqual({ name, value: String(defaults[name]) });
  }
});

test('.env.example explains every setting', () => {
  const blocks = TEXT.split('\n\n').flatMap((block) => block.split(/(?<=^#?[A-Z][A-Z0-9_]+=.*)\n(?=# )/m));
  for (const { name } of LINES) {
    const block = blocks.find((one) => new RegExp(`^#?${name}=`, 'm').test(one)) ?? '';
    expect({ name, explained: /^# \w/m.test(block) }).toEqual({ name, explained: true });
  }
});

test('everything in .env.example can be read as it is shown', () => {
  expect(() => readConfig(Object.fromEntries(LINES.map(({ name, value }) => [name, value])))).not.toThrow();
});

test('messages are not deleted while a repeat of their messageId finds them', () => {
  const settings = (days: string) => ({ MESSAGE_RETENTION_DAYS: days, IDEMPOTENCY_TTL_HOURS: '48' });
  expect(() => readConfig(settings('1'))).toThrow(
    'MESSAGE_RETENTION_DAYS: must be at least as long as IDEMPOTENCY_TTL_HOURS',
  );
  expect(readConfig(settings('2'))).toMatchObject({ MESSAGE_RETENTION_DAYS: 2 });
});
