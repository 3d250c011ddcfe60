import { expect, test } from 'vitest';
import { readCall } from '../../api/send/rpc.js';

function bodyWith(params: object): string {
  const message = { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'hello' }] };
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: { message, ...params } });
}

/** Reads a body that is written as given, where `"NUMBERS"` stands for many `1e20`, each of which grows as it is written again. */
function read(text: string, numbers: number) {
  const json = text.replace('"NUMBERS"', `[${Array.from({ length: numbers }, () => '1e20').join(',')}]`);
  return () => readCall(JSON.parse(json), Buffer.byteLength(json));
}

test.each([100, 600, 700, 710])('a small body is within the bounds on its parts: %d numbers', (numbers) => {
  expect(read(bodyWith({ metadata: { list: 'NUMBERS' } }), numbers)).not.toThrow();
});

test.each([800, 1_000, 3_000, 20_000])(
  'metadata that grows beyond 16 KiB as it is written is refused: %d numbers',
  (numbers) => {
    expect(read(bodyWith({ metadata: { list: 'NUMBERS' } }), numbers)).toThrow(
      'params.metadata: must be at most 16384 bytes',
    );
  },
);

test('a body of unknown size is measured', () => {
  const body = JSON.parse(bodyWith({ metadata: { text: 'x'.repeat(17_000) } })) as unknown;
  expect(() => readCall(body)).toThrow('params.metadata: must be at most 16384 bytes');
});
