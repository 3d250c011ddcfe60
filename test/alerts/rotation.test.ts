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

test.each<[what: string, rotations: [string | null | undefined, number][], valid: string[]]>([
  ['one secret', [['a', -30]], ['a']],
  [
    'a rotation an hour ago',
    [
      ['a', -30],
      ['b', -1],
    ],
    ['a', 'b'],
  ],
  [
    'a rotation just within the day',
    [
      ['a', -30],
      ['b', -23.9],
    ],
    ['a', 'b'],
  ],
  [
    'a rotation a day ago: the overlap has ended',
    [
      ['a', -30],
      ['b', -24],
    ],
    ['b'],
  ],
  [
    'two rotations within the day',
    [
      ['a', -30],
      ['b', -20],
      ['c', -1],
    ],
    ['a', 'b', 'c'],
  ],
  [
    'two rotations, the first of which is over',
    [
      ['a', -60],
      ['b', -25],
      ['c', -1],
    ],
    ['b', 'c'],
  ],
  [
    'a change that does not name the secret',
    [
      ['a', -30],
      ['b', -1],
      [undefined, -0.5],
    ],
    ['a', 'b'],
  ],
  [
    'the same secret again',
    [
      ['a', -30],
      ['b', -2],
      ['b', -1],
    ],
    ['a', 'b'],
  ],
  [
    'back to the secret before',
    [
      ['a', -30],
      ['b', -2],
      ['a', -1],
    ],
    ['a', 'b'],
  ],
  [
    'removed',
    [
      ['a', -30],
      ['b', -2],
      [null, -1],
    ],
    [],
  ],
  [
    'more rotations in a day than are kept',
    [
      ['a', -9],
      ['b', -8],
      ['c', -7],
      ['d', -6],
      ['e', -5],
      ['f', -4],
    ],
    ['b', 'c', 'd', 'e', 'f'],
  ],
])('webhook-signature has a signature by each valid secret: %s', (_what, rotations, valid) => {
  expect(verifiable(after(rotations, NOW), ['a', 'b', 'c', 'd', 'e', 'f'], NOW)).toEqual(valid);
});

test('what is over is not kept', () => {
  const secrets = after(
    [
      ['a', -60],
      ['b', -30],
      ['c', -1],
    ],
    NOW,
  );
  expect(secrets.previous_secrets?.map(({ secret }) => secret)).toEqual(['b']);
});
