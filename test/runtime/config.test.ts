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

test('sign-in of people is set as a whole, and what is wrong is named', () => {
  const problems = (changed: Record<string, string>) => {
    const oidc = {
      OIDC_ISSUER: 'https://login.example.com',
      OIDC_CLIENT_ID: 'fleet',
      OIDC_CLIENT_SECRET: 'secret',
      OIDC_ROLES: '[{"role":"staff","tenant":"ten_1","approvers":["finance"]},{"role":"ops","operator":true}]',
    };
    try {
      const { OIDC_ROLES, OIDC_CLAIM_ROLES } = readConfig({ ...oidc, ...changed });
      return JSON.stringify([OIDC_CLAIM_ROLES, OIDC_ROLES?.[0]]);
    } catch (error) {
      return (error as Error).message.split('\n')[1]?.trim();
    }
  };
  const staff = '{"role":"staff","tenant":"ten_1","scopes":["read"],"approvers":["finance"]}';
  expect(problems({})).toBe(`["groups",${staff}]`);
  expect(problems({ OIDC_ISSUER: 'http://localhost:9000' })).toBe(`["groups",${staff}]`);
  expect(problems({ OIDC_ISSUER: 'http://login.example.com' })).toBe(
    'OIDC_ISSUER: must be https://, except on this machine',
  );
  expect(problems({ OIDC_CLIENT_SECRET: '' })).toBe(
    'OIDC_ISSUER: must be set together with OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and OIDC_ROLES',
  );
  expect(problems({ OIDC_ROLES: '{' })).toBe('OIDC_ROLES: must be JSON');
  expect(problems({ OIDC_ROLES: '[{"role":"a"}]' })).toBe('OIDC_ROLES.0: needs either "tenant" or "operator": true');
  expect(problems({ OIDC_ROLES: '[{"role":"a","tenant":"t","scopes":["all"]}]' })).toMatch(
    /^OIDC_ROLES\.0\.scopes\.0: /,
  );
  // A name that is that of a scope or of a credential would be more than a name.
  expect(problems({ OIDC_ROLES: '[{"role":"a","tenant":"t","approvers":["full"]}]' })).toMatch(/scope$/);
  expect(problems({ OIDC_ROLES: '[{"role":"a","tenant":"t","approvers":["cred_1"]}]' })).toMatch(/and no id$/);
  const many = Array.from({ length: 17 }, (_, index) => ({ role: 'a', tenant: 't', approvers: [`n${index}`] }));
  expect(problems({ OIDC_ROLES: JSON.stringify(many) })).toBe(
    'OIDC_ROLES: more than 16 different approvers for the tenant t',
  );
});
