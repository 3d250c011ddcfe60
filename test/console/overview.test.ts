import { expect, test } from 'vitest';
import { agentsText, deliveriesText, nearQuotas, stuckReasons } from '../../console/overview/needs.js';
import { pathOf } from '../../console/overview/path.js';
import type { ListedAgent } from '../../contracts/api/agents.js';
import type { Delivery } from '../../contracts/api/deliveries.js';

const AT = '2026-11-29T00:00:00.000Z';
const limitsOf = (messages: number, tokens: number, cost: number) =>
  nearQuotas({
    ok: true,
    limits: { messages_per_day: 1_000, tokens_per_day: 0, cost_usd_per_month: cost < 0 ? null : 50 },
    used: { messages, tokens, cost_usd: cost },
    ...{ day_ends_at: AT, month_ends_at: AT },
  }).map(({ name, used }) => [name, used]);

test('quotas from four fifths on are near their end, the nearest first', () => {
  const none = ['tokens of today', 0];
  expect(limitsOf(799, 0, 39)).toEqual([none]);
  expect(limitsOf(800, 0, 49)).toEqual([none, ['US dollars of this month', 49], ['messages of today', 800]]);
  expect(limitsOf(0, 0, -1)).toEqual([none]);
});

test('what people are asked is not stuck', () => {
  const group = { oldest_at: AT, newest_at: AT, sample_message_id: 'msg_1' };
  const groups = [
    { key: 'person', count: 4, ...group },
    { key: 'room', count: 2, ...group },
  ];
  expect(stuckReasons(groups)).toEqual([{ kind: 'room', count: 2 }]);
});

test('agents and receivers are named, with why', () => {
  const agents = ['a', 'b', 'c', 'd'].map((instance_id) => ({ instance_id, last_error: 'OOPS' }) as ListedAgent);
  expect(agentsText(agents, 9)).toBe('a (OOPS), b (OOPS), c (OOPS), and 6 more');
  const to = (url: string, last: object) => ({ url, attempts: [last] }) as unknown as Delivery;
  const refused = to('https://ops.example/hook', { status_code: 503 });
  const lost = to('mail', { status_code: null, error: 'TIMEOUT' });
  expect(deliveriesText([refused, refused, lost])).toBe('ops.example (503), mail (TIMEOUT)');
});

test.each([
  [[0, 10], 'M0.0 72.0L320.0 0.0'],
  [[null, 5, null], 'M160.0 36.0h.01'],
  [[10, null, 5], 'M0.0 0.0h.01M320.0 36.0h.01'],
  [[null, null], ''],
])('%j is drawn as %j', (values, path) => {
  expect(pathOf(values, 10)).toBe(path);
});
