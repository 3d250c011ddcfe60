import { expect, test } from 'vitest';
import { createSecrets } from '../../runtime/secrets.js';

const secrets = createSecrets(Buffer.alloc(32, 1).toString('base64'));
const others = createSecrets(Buffer.alloc(32, 2).toString('base64'));

test('what is sealed for a purpose is opened for that purpose only, by that key only', () => {
  const sealed = secrets.encrypt('größer', 'a');
  expect(secrets.decrypt(sealed, 'a').toString()).toBe('größer');
  expect(() => secrets.decrypt(sealed, 'b')).toThrow();
  expect(() => others.decrypt(sealed, 'a')).toThrow();
});

test('the same text is sealed differently each time', () => {
  expect(secrets.encrypt('text', 'a').equals(secrets.encrypt('text', 'a'))).toBe(false);
});

test('no byte of what is sealed can be changed or left out', () => {
  const sealed = secrets.encrypt('text', 'a');
  for (let at = 0; at < sealed.length; at++) {
    const altered = Buffer.from(sealed);
    altered[at] = (altered[at] ?? 0) ^ 1;
    expect(() => secrets.decrypt(altered, 'a'), `byte ${at}`).toThrow();
    expect(() => secrets.decrypt(sealed.subarray(0, at), 'a'), `cut at ${at}`).toThrow();
  }
});

test('a MAC depends on text, purpose and key', () => {
  const macs = [secrets.mac('t', 'a'), secrets.mac('u', 'a'), secrets.mac('t', 'b'), others.mac('t', 'a')];
  expect(new Set(macs.map((mac) => mac.toString('hex'))).size).toBe(4);
  expect(secrets.mac('t', 'a')).toEqual(macs[0]);
});

test.each(['', 'short', Buffer.alloc(31).toString('base64'), Buffer.alloc(33).toString('base64')])(
  '%o is not a key',
  (key) => {
    expect(() => createSecrets(key)).toThrow(/32 bytes/);
  },
);
