import { expect, test } from 'vitest';
import { POLICY_OPERATIONS } from '../../contracts/api/policies/policies.js';
import { decided, type Given } from './policy-fixture.js';

const explained = (match: Given['match'], about: Parameters<typeof decided>[1]) =>
  decided([{ decision: 'deny', match }], about).trace[0]?.explanation;
const numbered = (name: (n: number) => string) => Array.from({ length: 2_000 }, (_, n) => name(n));

const [FILES, URLS, SKILLS] = [numbered((n) => `/a/${n}`), numbered((n) => `http://h${n}/`), numbered((n) => `s${n}`)];

test.each<[string, Given['match'], Parameters<typeof decided>[1], string]>([
  ['paths', { paths: ['/etc/**'] }, { arguments: { files: FILES } }, '/a/0, /a/1, /a/2, /a/3, /a/4 and 1995 more'],
  ['hosts', { hosts: ['evil.example'] }, { arguments: { urls: URLS } }, 'h0, h1, h2, h3, h4 and 1995 more'],
  ['skills', { skills: ['paint'] }, { agent: { skill_ids: SKILLS } }, 's0, s1, s2, s3, s4 and 1995 more'],
  ['paths', { paths: ['/etc/**'] }, { arguments: { path: '/a' } }, '/a'],
])('an explanation names few of many: %s', (what, match, about, few) => {
  expect(explained(match, about)).toBe(`${what}: ${few} does not match.`);
});

test('a long explanation is cut', () => {
  const match: Given['match'] = { arguments: [{ path: 'a', op: 'eq', value: '\u{1f600}'.repeat(2_000) }] };
  const text = explained(match, { arguments: {} }) ?? '';
  expect(text).toHaveLength(1_024);
  expect(text.isWellFormed()).toBe(true);
});

test('what is tested has no more arguments than a tool call', () => {
  const { request } = POLICY_OPERATIONS.testPolicy;
  const withText = (chars: number) => ({ scope: 'tool', action: 'call', arguments: { text: 'x'.repeat(chars) } });
  expect(request.safeParse(withText(250_000)).success).toBe(true);
  expect(request.safeParse(withText(300_000)).success).toBe(false);
});
