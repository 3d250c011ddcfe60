import { expect, test } from 'vitest';
import { checkSendParams } from '../../../api/send/send-methods.js';
import { MessageSendParams } from '../../../contracts/a2a/a2a.js';

function paramsWith(members: object): string {
  const message = { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'hello' }] };
  return JSON.stringify({ message, ...members });
}

/** Reads params that is written as given, where `"NUMBERS"` stands for many `1e20`, each of which grows as it is written again. */
function read(text: string, numbers: number) {
  const json = text.replace('"NUMBERS"', `[${Array.from({ length: numbers }, () => '1e20').join(',')}]`);
  return () => checkSendParams(MessageSendParams.parse(JSON.parse(json)), Buffer.byteLength(json));
}

test.each([100, 600, 700, 710])('a small body is within the bounds on its parts: %d numbers', (numbers) => {
  expect(read(paramsWith({ metadata: { list: 'NUMBERS' } }), numbers)).not.toThrow();
});

test.each([800, 1_000, 3_000, 20_000])(
  'metadata that grows beyond 16 KiB as it is written is refused: %d numbers',
  (numbers) => {
    expect(read(paramsWith({ metadata: { list: 'NUMBERS' } }), numbers)).toThrow(
      'params.metadata: must be at most 16384 bytes',
    );
  },
);

test('a body of unknown size is measured', () => {
  const params = MessageSendParams.parse(JSON.parse(paramsWith({ metadata: { text: 'x'.repeat(17_000) } })));
  expect(() => checkSendParams(params)).toThrow(
    /^params\.metadata: must be at most 16384 bytes of JSON, with the args in it: .* data part/,
  );
});
