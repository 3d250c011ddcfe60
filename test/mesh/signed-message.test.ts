import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { openMessage, signMessage } from '../../mesh/nodes/signed-message.js';
import { createSecrets } from '../../runtime/secrets.js';

const keys = [1, 2, 3].map(() => randomBytes(32).toString('base64'));
const [key = '', next = '', foreign = ''] = keys;
const secrets = createSecrets(key);
const NOW = 1_800_000_000_000;
const signed = signMessage(secrets, 'mesh_b', '{"kind":"fill"}', NOW);

test.each<[what: string, result: object, open: () => object]>([
  ['as it was sent', { text: '{"kind":"fill"}' }, () => openMessage(secrets, 'mesh_b', signed, NOW)],
  [
    'by a clock that is some seconds off',
    { text: '{"kind":"fill"}' },
    () => openMessage(secrets, 'mesh_b', signed, NOW - 20_000),
  ],
  ['for another node', { dropped: 'forged' }, () => openMessage(secrets, 'mesh_c', signed, NOW)],
  ['altered', { dropped: 'forged' }, () => openMessage(secrets, 'mesh_b', signed.replace('fill', 'call'), NOW)],
  [
    'with another time',
    { dropped: 'forged' },
    () => openMessage(secrets, 'mesh_b', signed.replace(String(NOW), String(NOW + 1)), NOW),
  ],
  ['without a signature', { dropped: 'forged' }, () => openMessage(secrets, 'mesh_b', '{"kind":"fill"}', NOW)],
  ['with an empty one', { dropped: 'forged' }, () => openMessage(secrets, 'mesh_b', '', NOW)],
  ['by who has another key', { dropped: 'forged' }, () => openMessage(createSecrets(foreign), 'mesh_b', signed, NOW)],
  ['kept for more than a minute', { dropped: 'late' }, () => openMessage(secrets, 'mesh_b', signed, NOW + 60_001)],
  ['from later', { dropped: 'late' }, () => openMessage(secrets, 'mesh_b', signed, NOW - 60_001)],
  [
    'while the key is rotated',
    { text: '{"kind":"fill"}' },
    () => openMessage(createSecrets(next, [key]), 'mesh_b', signed, NOW),
  ],
])('a message between nodes, %s', (_what, result, open) => {
  expect(open()).toEqual(result);
});
