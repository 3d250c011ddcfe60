import { expect, test } from 'vitest';
import { compileCel } from '../../policy/evaluators/cel.js';
import { Facts } from '../../policy/matching/facts.js';

/** A tool call whose arguments have many items and a long text. */
const callWith = (args: Record<string, unknown>) =>
  new Facts('ten_1', { scope: 'tool', action: 'tool_call', tool: 'x', arguments: args });

test('the size of a text costs as much as the text is long', () => {
  const { test: holds } = compileCel('request.arguments.items.all(x, size(request.arguments.text) > 0)');
  const items = Array.from({ length: 500 }, (_, n) => n);
  expect(() => holds(callWith({ items, text: 'x'.repeat(30_000) }))).toThrow('would cost too much');
  expect(holds(callWith({ items: [1, 2], text: 'short' }))).toBe(true);
});
