import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readConfig } from '../../runtime/config.js';

test('everything in .env.example can be read as it is shown', () => {
  const text = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8');
  const settings = [...text.matchAll(/^#([A-Z][A-Z0-9_]+)=(.*)$/gm)].map(([, name, value]) => [name, value]);
  expect(settings.length).toBeGreaterThan(40);
  expect(() => readConfig(Object.fromEntries(settings))).not.toThrow();
});

test('messages are not deleted while a repeat of their messageId finds them', () => {
  const settings = (days: string) => ({ MESSAGE_RETENTION_DAYS: days, IDEMPOTENCY_TTL_HOURS: '48' });
  expect(() => readConfig(settings('1'))).toThrow(
    'MESSAGE_RETENTION_DAYS: must be at least as long as IDEMPOTENCY_TTL_HOURS',
  );
  expect(readConfig(settings('2'))).toMatchObject({ MESSAGE_RETENTION_DAYS: 2 });
});
