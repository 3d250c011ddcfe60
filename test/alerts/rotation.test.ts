import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { rotated } from '../../alerts/channel-input.js';
import { type SigningSecrets, signatureHeaders } from '../../http/webhook-signatures.js';

const HOUR = 3_600_000;
const BODY = Buffer.from('{"hello":"ünï"}');

/** The secrets by which a body that is sent at a time can be verified, of those that were ever set. */
function verifiable(secrets: SigningSecrets, all: string[], nowMs: number): string[] {
  const headers = signatureHeaders(secrets, 'dlv_1', BODY, nowMs);
  return all.filter((secret) => {
    try {
      return new Webhook(Buffer.from(secret), { format: 'raw' }).verify(BODY, headers) !== undefined;
    } catch {
      return false;
    }
  });
}

/** The secrets after each was set at its hour. */
function after(rotations: [secret: string | null | undefined, hour: number][], startMs: number): SigningSecrets {
  return rotations.reduce<SigningSecrets>(
    (stored, [secret, hour]) => rotated(secret, stored, startMs + hour * HOUR),
    {},
  );
}

const NOW = Date.now();

/** Each secret and the hour at which it was set, for example `b -1`; `none` removes it, `same` does not name it. */
const rotations = (text: string) =>
  text.split(', ').map((one): [string | null | undefined, number] => {
    const [secret = '', hour] = one.split(' ');
    const named = { none: null, same: undefined };
    return [secret in named ? named[secret as keyof typeof named] : secret, Number(hour)];
  });

test.each([
  ['one secret', 'a -30', 'a'],
  ['a rotation an hour ago', 'a -30, b -1', 'ab'],
  ['a rotation just within the day', 'a -30, b -23.9', 'ab'],
  ['a rotation a day ago: the overlap has ended', 'a -30, b -24', 'b'],
  ['two rotations within the day', 'a -30, b -20, c -1', 'abc'],
  ['two rotations, the first of which is over', 'a -60, b -25, c -1', 'bc'],
  ['a change that does not name the secret', 'a -30, b -1, same -0.5', 'ab'],
  ['the same secret again', 'a -30, b -2, b -1', 'ab'],
  ['back to the secret before', 'a -30, b -2, a -1', 'ab'],
  ['removed', 'a -30, b -2, none -1', ''],
  ['more rotations in a day than are kept', 'a -9, b -8, c -7, d -6, e -5, f -4', 'bcdef'],
])('webhook-signature has a signature by each valid secret: %s', (_what, given, valid) => {
  expect(verifiable(after(rotations(given), NOW), [...'abcdef'], NOW)).toEqual([...valid]);
});

test('what is over is not kept', () => {
  const secrets = after(rotations('a -60, b -30, c -1'), NOW);
  expect(secrets.previous_secrets?.map(({ secret }) => secret)).toEqual(['b']);
});
