import { expect, test } from 'vitest';
import { type Bar, barsOf } from '../../console/message/bars.js';
import type { EventRecord } from '../../contracts/api/telemetry.js';

const eventOf = ([atMs, event_type, event = {}]: [number, string, object?]) =>
  ({ event_id: `${atMs}`, event_type, timestamp: new Date(atMs).toISOString(), event }) as unknown as EventRecord;
const text = ({ label, startMs, endMs, isOpen, isBad }: Bar) =>
  `${label} ${startMs}-${endMs}${isOpen ? ' open' : ''}${isBad ? ' bad' : ''}`;

const RECEIVED: [number, string] = [0, 'message.received'];
type At = [number, string, object?];
const sent = (atMs: number, id: string): At => [atMs, 'dispatch.sent', { dispatch_id: id, instance_id: `agent-${id}` }];

test.each<[string, At[], string[]]>([
  ['nothing has happened', [], []],
  ['it waits', [RECEIVED], ['Accepted 0-0', 'Waits 0-1000 open']],
  [
    'an agent completes it',
    [RECEIVED, sent(20, '1'), [300, 'dispatch.success', { dispatch_id: '1' }], [301, 'message.completed']],
    ['Accepted 0-0', 'Waits 0-20', 'With agent-1 20-300', 'Completed 301-301'],
  ],
  [
    'an agent fails, another one works',
    [RECEIVED, sent(20, '1'), [300, 'dispatch.failed', { dispatch_id: '1' }], sent(500, '2')],
    ['Accepted 0-0', 'Waits 0-20', 'With agent-1 20-300 bad', 'Waits 300-500', 'With agent-2 500-1000 open'],
  ],
  [
    'a policy asks, with a reminder, and it is canceled',
    [
      RECEIVED,
      [5, 'policy.approval_required', { policy_name: 'money', tool: 'pay' }],
      [5, 'message.input_required', { request_id: 'q' }],
      [100, 'message.input_required', { request_id: 'q', reminder: 1 }],
      [200, 'message.resolved', { request_id: 'q' }],
      [400, 'message.canceled'],
    ],
    [
      ...['Accepted 0-0', 'Waits 0-5', 'Policy money: pay 5-5', 'A person is asked 5-200'],
      ...['Waits 200-400', 'Canceled 400-400 bad'],
    ],
  ],
  [
    'a guard denies it',
    [RECEIVED, [9, 'guard.denied', { guard: 'path', tool: null }], [9, 'message.error', { error: 'POLICY_DENIED' }]],
    ['Accepted 0-0', 'Waits 0-9', 'Guard path 9-9 bad', 'Failed 9-9 bad'],
  ],
])('the bars where %s', (_case, events, bars) => {
  expect(barsOf(events.map(eventOf), 1_000).map(text)).toEqual(bars);
});
