import { expect, test } from 'vitest';
import { MessageUsage } from '../../contracts/api/messages.js';
import { LIMITS } from '../../contracts/limits.js';
import { addUsage } from '../../messages/dispatch/open-dispatch.js';

const of = (input_tokens: number, model?: string, cost_usd?: number) => ({
  ...{ input_tokens, output_tokens: 1 },
  ...(model !== undefined && { model }),
  ...(cost_usd !== undefined && { cost_usd }),
});

test.each([
  ['nothing before', null, of(5, 'a'), of(5, 'a')],
  ['nothing more', of(5, 'a'), undefined, of(5, 'a')],
  ['the same model', of(5, 'a', 1), of(2, 'a'), { ...of(7, 'a', 1), output_tokens: 2 }],
  ['a turn without a model', of(5, 'a'), of(2), { ...of(7, 'a'), output_tokens: 2 }],
  ['no model at all', of(5), of(2), { ...of(7), output_tokens: 2 }],
  ['another model', of(5, 'a'), of(2, 'b'), { ...of(7, 'b'), output_tokens: 2, by_model: [of(5, 'a'), of(2, 'b')] }],
  ['a first model', of(5), of(2, 'b'), { ...of(7, 'b'), output_tokens: 2, by_model: [of(5), of(2, 'b')] }],
])('%s', (_name, before, more, after) => {
  expect(addUsage(before, more)).toEqual(after);
});

test('a model that comes again is in the list once', () => {
  const usage = ['a', 'b', 'a', undefined].reduce(
    (before: MessageUsage | null, model) => addUsage(before, of(1, model, 2)),
    null,
  );
  expect(usage?.by_model).toEqual([
    { input_tokens: 3, output_tokens: 3, model: 'a', cost_usd: 6 },
    { input_tokens: 1, output_tokens: 1, model: 'b', cost_usd: 2 },
  ]);
});

test('beyond the bound, further models count as the last one, and no token is lost', () => {
  let usage: MessageUsage | null = null;
  for (let turn = 1; turn <= LIMITS.messageModelsMax + 5; turn += 1) usage = addUsage(usage, of(turn, `m${turn}`));
  expect(MessageUsage.parse(usage).by_model).toHaveLength(LIMITS.messageModelsMax);
  expect(usage?.by_model?.reduce((sum, { input_tokens }) => sum + input_tokens, 0)).toBe(usage?.input_tokens);
});
