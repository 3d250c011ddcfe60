import { expect, test } from 'vitest';
import { explain, type Facts } from '../../cli/client/why.js';
import type { MessageRecord } from '../../contracts/api/messages.js';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const AT = '2026-03-01T11:55:00.000Z';

const agent: Facts['agents'][number] = {
  ...{ instance_id: 'w-1', agent_type: 'worker', status: 'busy', last_seen: AT, in_flight: 2 },
  ...{ current_sessions: 1, max_concurrent_sessions: 10, max_concurrent_tasks: 2 },
};

function said(message: Partial<MessageRecord>, facts: Partial<Omit<Facts, 'message'>> = {}): string {
  const known = { message_id: 'msg_1', agent_type: 'worker', instance_id: 'w-1', created_at: AT, ...message };
  const all = { agents: [], before: [], cancelReason: '', ...facts };
  return explain({ message: known as MessageRecord, ...all }, NOW).join('\n');
}

const waits = (kind: string, more: object = {}) =>
  ({ state: 'submitted', waits_for: { kind, since: AT, ...more } }) as Partial<MessageRecord>;
const worker = { target: { agent_type: 'worker' } };
/** What is said where a person is asked. */
const asked = (more: object = {}) => {
  const input_request = {
    ...{ request_id: 'req_1', kind: 'approval', source: 'policy', title: 'Call pay?', prompt: 'Too much.' },
    ...{ quorum: 1, approvals: [], expires_at: '2026-03-02T00:00:00.000Z', ...more },
  } as unknown as MessageRecord['input_request'];
  return said({ state: 'input-required', input_request });
};
const failed = (code: string, message: string, more: object) =>
  said({ state: 'failed', error: { code, message }, ...more });
const completed = (completed_at: string) => said({ state: 'completed', completed_at });
const AGENTS = { agents: [agent] };

test.each<[string, string, string[]]>([
  ['nobody is there', said(waits('agent', worker)), ['an agent of the type worker, and none is registered']],
  [
    'those that are there are away',
    said(waits('agent', worker), { agents: [{ ...agent, status: 'offline' }] }),
    ['of 1 that is registered none is online', 'w-1 is offline', 'last seen 5m ago'],
  ],
  [
    'all are full',
    said(waits('room', { ...worker, ahead: 3 }), AGENTS),
    ['all that are online are full', 'w-1 is busy: it has 2 of 2 messages', '3 messages come first', 'waited for 5m'],
  ],
  ['one is full', said(waits('room', { target: { instance_id: 'w-1' }, ahead: 0 })), ['the agent w-1', 'the first']],
  ['a skill is wanted', said(waits('room', { target: { skill_id: 'pay' } })), ['an agent with the skill pay']],
  [
    'another message comes first',
    said(waits('turn'), { before: [{ message_id: 'msg_0', state: 'working' }] }),
    ['Its session is ordered', 'msg_0 is working', 'fleet why msg_0'],
  ],
  ['an evaluator is asked', said(waits('evaluator')), ['an evaluator outside']],
  ['the tenant has too many', said(waits('quota')), ['as many messages of this tenant as they may']],
  [
    'a person is asked',
    asked({ tool: 'pay', arguments: { amount: 5 }, approvers: ['ann'], quorum: 2 }),
    [
      ...['A policy asks a person: Call pay? Too much.', 'pay with {"amount":5}', '0 of 2 people'],
      ...['ann, or', 'fleet resolve msg_1'],
    ],
  ],
  [
    'an agent asks the same twice',
    asked({ source: 'agent', prompt: 'Call pay?' }),
    ['The agent asks a person: Call pay?\n', 'Whoever may answers'],
  ],
  ['a title is no sentence', asked({ title: 'Dates', prompt: 'When?' }), ['A policy asks a person: Dates: When?']],
  ['an agent has it', said({ state: 'working', started_at: AT }, AGENTS), ['the agent w-1 (worker), since 5m ago']],
  [
    'it failed without an agent',
    failed('TARGET_UNAVAILABLE', 'Nobody.', { instance_id: null }),
    ['It failed: Nobody.', 'No agent had got it.', 'TARGET_UNAVAILABLE', '/messages/retry'],
  ],
  ['it failed with one', failed('HANDLER_ERROR', 'Oops.', { started_at: AT }), ['The agent w-1 had got it.']],
  ['it was canceled', said({ state: 'canceled', completed_at: AT }, { cancelReason: 'enough' }), [`at ${AT}: enough`]],
  [
    'it is over',
    completed('2026-03-01T11:56:30.000Z'),
    ['completed by the agent w-1 (worker)', '1m after it was sent'],
  ],
])('%s', (_what, text, parts) => {
  for (const part of parts) expect(text).toContain(part);
});
