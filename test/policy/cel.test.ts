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

test.each([
  ['request.text == "x"', /there is no request\.text\. A request has scope, action, tool, tenant, arguments, agent,/],
  ['has(request.agent.type)', /there is no request\.agent\.type\. It has agent_type, instance_id,/],
  [
    'request.token.scopes.exists(s, s == request.session.user)',
    /there is no request\.session\.user\. It has session_id/,
  ],
  ['request.tool.name == "pay"', /there is no request\.tool\.name\. It is a text\.$/],
])('%s reads what no request has', (expression, problem) => {
  expect(() => compileCel(expression)).toThrow(problem);
});

test.each([
  'request.arguments.any.thing == 1',
  'size(request) > 0',
  'request.tool.startsWith("a")',
  'has(request.agent.skill_ids)',
])('%s reads what a request has', (expression) => {
  expect(() => compileCel(expression)).not.toThrow();
});
