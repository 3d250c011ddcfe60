import { expect, test } from 'vitest';
import { SecretKind } from '../../../contracts/api/policies/guards.js';
import { messageContent, outputContent, toolResult } from '../../../policy/guards/content.js';
import { inArguments, inText, only } from './guards-fixture.js';

const all = only({ guard: 'secrets', config: { detect: SecretKind.options } });

/** Made up, and put together here so that scanners of repositories do not take them for real ones. */
const made = (prefix: string, rest: string): string => `${prefix}${rest}`;
const LONG = 'Zk3uQ9xT7bW1mN5cV8pL2rY6hJ4dF0gSaBqEwErTyUiOpAsDfGhJkLzXcVbNm123456789';
const AWS = made('AKI', 'AZ7Q3M5N1P9R2T4V6');

test.each<[rule: string, text: string]>([
  ['aws_access_key', `key ${AWS} for you`],
  ['aws_access_key', `(${made('ASI', 'AZ7Q3M5N1P9R2T4V6')})`],
  ['aws_access_key', `AKI\u200bA${AWS.slice(4)}`],
  ['aws_access_key', `ＡＫＩＡ${AWS.slice(4)}`],
  ['github_token', made('ghp', `_${LONG.slice(0, 36)}`)],
  ['github_token', made('github_pat', `_${LONG.slice(0, 40)}`)],
  ['gitlab_token', made('glp', `at-${LONG.slice(0, 20)}`)],
  ['slack_token', made('xox', 'b-123456789012-abcdefghijkl')],
  ['slack_webhook', made('https://hooks.slack', '.com/services/T01ABCDEF/B01ABCDEF/abcdefghijklmnopqrstuvwx')],
  ['stripe_key', made('sk_', `live_${LONG.slice(0, 24)}`)],
  ['google_key', made('AIz', `a${LONG.slice(0, 35)}`)],
  ['model_provider_key', made('sk-', `proj-${LONG.slice(0, 40)}`)],
  ['model_provider_key', made('sk-ant', `-api03-${LONG.slice(0, 40)}`)],
  ['package_token', made('npm', `_${LONG.slice(0, 36)}`)],
  ['cloud_token', made('dop_v1', `_${'0123456789abcdef'.repeat(4)}`)],
  ['jwt', made('eyJ', `hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.${LONG.slice(0, 43)}`)],
  ['private_key', '-----BEGIN RSA PRIVATE KEY-----\nMIIE…'],
  ['private_key', '-----BEGIN OPENSSH PRIVATE KEY-----'],
  ['private_key', '-----BEGIN PGP PRIVATE KEY BLOCK-----'],
  ['authorization', `curl -H "Authorization: Bearer ${LONG.slice(0, 32)}" https://api.example.com`],
  ['url_password', 'postgres://app:hunter2-Kx9@db.example.com:5432/app'],
  ['assigned_secret', `password = "${LONG.slice(0, 14)}"`],
  ['assigned_secret', `{"client_secret":"${LONG.slice(0, 24)}"}`],
  ['assigned_secret', `export AWS_SECRET_ACCESS_KEY=${LONG.slice(0, 40)}`],
  ['payment_card', 'My card is 4111 1111 1111 1111, thank you.'],
  ['payment_card', 'Card:5500-0000-0000-0004'],
  ['payment_card', '378282246310005'],
  ['payment_card', 'In 2024 4012888888881881 was charged'],
  ['iban', 'DE89 3704 0044 0532 0130 00'],
  ['iban', 'Pay to GB29NWBK60161331926819.'],
  ['us_ssn', 'SSN 536-90-4399'],
  ['email_address', 'Write to jane.doe+x@mail.example.co.uk.'],
  ['phone_number', 'Call +49 30 901820 or (555) 123-4567'],
])('%s is found in %s', (rule, text) => {
  const findings = inText(all, text);
  expect(findings.map((finding) => finding.rule)).toContain(rule);
  expect(findings[0]).toMatchObject({ guard: 'secrets', decision: 'deny', path: 'parts[0].text' });
  // Findings get into events: they name what was found and do not repeat it.
  for (const { reason } of findings) expect(reason).toMatch(/^The content holds an? [\w\s]+\.$/i);
});

test.each([
  'Please summarise the attached report.',
  'AKIA is the prefix of AWS access keys',
  `x${made('AKI', 'AZ7Q3M5N1P9R2T4V6')}Z`,
  'ghp_short',
  'The task-force-of-the-year-2024 award',
  'sk-learn is short for scikit-learn, sk-fading-circle-container',
  'password: required',
  'password = "<your-password>"',
  'Set password=$' + '{DB_PASSWORD} in the file',
  'password: ********',
  'api_key: process.env.API_KEY',
  'token: next_page',
  'max_tokens: 4096, tokens used 12345678',
  'The secret of success is patience',
  'postgres://user:password@localhost/app',
  'https://example.com:8443/path?x=1',
  'Authorization: Bearer <token>',
  '-----BEGIN PUBLIC KEY-----',
  '-----BEGIN CERTIFICATE-----',
  'eyJ is how base64 of JSON begins',
  'Order 4111 1111 1111 1112 was shipped',
  'Invoice 1234567890123456',
  '0000 0000 0000 0000',
  '2026-11-22 10:00:00.000000, 1732269600000',
  'pi is 3.1415926535897932384',
  '0190c8a0-7b1e-7000-8000-123456789abc',
  'DE89 3704 0044 0532 0130 01',
  'SSN 000-12-3456 and 123-45-6789 are examples',
  'call me at noon',
  'a@b, @handle and user@localhost',
  'version 1.2.3-4 (5)',
  'sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
])('nothing is found in %s', (text) => {
  expect(inText(all, text)).toEqual([]);
});

test('only the configured kinds are looked for', () => {
  const cards = only({ guard: 'secrets', config: { detect: ['payment_cards'] } });
  expect(inText(cards, `${AWS} jane@example.com`)).toEqual([]);
  expect(inText(cards, '4111 1111 1111 1111')).toHaveLength(1);
  expect(inText(only({ guard: 'secrets' }), 'jane@example.com')).toEqual([]);
});

test('the place of a secret is named: members, keys, files, metadata', () => {
  expect(inArguments(all, { to: [{ body: `key ${AWS}` }] })).toMatchObject([{ path: 'arguments.to[0].body' }]);
  expect(inArguments(all, { [AWS]: true })).toMatchObject([{ path: 'arguments.*' }]);
  expect(inArguments(all, { db: { password: 'correct horse' } })).toMatchObject([
    { rule: 'named_secret', path: 'arguments.db.password' },
  ]);
  const bytes = Buffer.from(`aws_access_key_id = ${AWS}`).toString('base64');
  const file = messageContent([{ kind: 'file', file: { bytes, mimeType: 'text/plain' } }], {});
  expect(all.inspect(file)).toMatchObject([{ rule: 'aws_access_key', path: 'parts[0].file.bytes' }]);
  expect(all.inspect(messageContent([], { note: AWS }))).toMatchObject([{ path: 'metadata.note' }]);
});

test('a secret that is divided among parts is found in what they are together', () => {
  const divided = [AWS.slice(0, 7), AWS.slice(7)];
  const parts = divided.map((text) => ({ kind: 'text' as const, text }));
  expect(all.inspect(messageContent(parts, {}))).toMatchObject([{ rule: 'aws_access_key', path: 'parts' }]);
  const artifacts = divided.map((text, artifactId) => ({ artifactId, parts: [{ kind: 'text', text }] }));
  expect(all.inspect(outputContent({ artifacts }))).toMatchObject([{ rule: 'aws_access_key' }]);
  const content = divided.map((text) => ({ type: 'text', text }));
  expect(all.inspect(toolResult({ content }))).toMatchObject([{ path: 'result.content' }]);
  const key = { kind: 'text' as const, text: 'password' };
  expect(all.inspect(messageContent([key, { kind: 'text', text: ': x9Kq2mZ7rT4w' }], {}))).toHaveLength(1);
  const harmless = ['AKIA is the prefix', 'of 20 characters'].map((text) => ({ kind: 'text' as const, text }));
  expect(all.inspect(messageContent(harmless, {}))).toEqual([]);
});

test.each<[string, Buffer, boolean]>([
  ['in lines', Buffer.from(`${'x'.repeat(100)} ${AWS}`), true],
  [
    'with bytes that are no text',
    Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(`the key is ${AWS} here`)]),
    true,
  ],
  ['in UTF-16', Buffer.from(`\ufeff${AWS}`, 'utf16le'), true],
  ['that is no text', Buffer.concat([Buffer.alloc(200, 0xfe), Buffer.from(AWS)]), false],
])('a file %s', (_what, content, isFound) => {
  const bytes = content.toString('base64').replace(/.{76}/g, '$&\r\n');
  const found = all.inspect(messageContent([{ kind: 'file', file: { bytes } }], {}));
  expect(found.length > 0).toBe(isFound);
});
