import { expect, test } from 'vitest';
import {
  type Registered,
  requiredText,
  type TargetNames,
  unknownText,
  waitedText,
} from '../../messages/accept/target-text.js';

const names = (...given: string[]) => ({ names: given, more: false });
const ANY: TargetNames = { instance_id: null, agent_type: null, skill_id: null };
const FLEET: Registered = { types: names('a', 'b'), type: true, skills: names('s'), instance: null };

test.each<[Partial<TargetNames>, Partial<Registered>, string]>([
  [{ agent_type: 'x' }, { type: false }, 'No agent of the type x is registered. Registered types: a, b.'],
  [{ agent_type: 'x' }, { type: false, types: names() }, 'No agent is registered.'],
  [
    { agent_type: 'x', skill_id: 's' },
    { type: false, types: { names: ['a'], more: true } },
    'No agent of the type x is registered. Registered types: a, ….',
  ],
  [{ instance_id: 'i' }, {}, 'The agent i is not registered. Registered types: a, b.'],
  [
    { instance_id: 'i' },
    { instance: { agent_type: 'a', registered: false } },
    'The agent i is deregistered. Registered types: a, b.',
  ],
  [
    { instance_id: 'i', agent_type: 'b' },
    { instance: { agent_type: 'a', registered: true } },
    'The agent i is of the type a, not b.',
  ],
  [
    { instance_id: 'i', skill_id: 't' },
    { instance: { agent_type: 'a', registered: true } },
    'The agent i does not have the skill t. Skills there are: s.',
  ],
  [{ skill_id: 't' }, {}, 'No registered agent has the skill t. Skills there are: s.'],
  [
    { agent_type: 'a', skill_id: 't' },
    { skills: names() },
    'No registered agent of the type a has the skill t. None is declared.',
  ],
])('what is not registered: %j of %j', (target, fleet, text) => {
  expect(unknownText({ ...ANY, ...target }, { ...FLEET, ...fleet })).toBe(text);
});

test.each<[Partial<TargetNames>, Record<string, number>, string]>([
  [
    { agent_type: 'x' },
    { offline: 2, full: 1 },
    'It waited for an agent of the type x: 1 full, 2 offline. Start another one, or raise max_concurrent_sessions or max_concurrent_tasks.',
  ],
  [{ instance_id: 'i', agent_type: 'x' }, { offline: 1 }, 'It waited for the agent i: 1 offline. Connect it again.'],
  [{ skill_id: 's' }, { draining: 3 }, 'It waited for an agent with the skill s: 3 draining. Start another one.'],
  [
    { agent_type: 'x', skill_id: 's' },
    {},
    'It waited for an agent of the type x with the skill s: none is registered any more. Register one.',
  ],
  [
    { agent_type: 'x' },
    { free: 1 },
    'It waited for an agent of the type x: 1 not reached. Read /agents/get_connection for its last error.',
  ],
])('what was waited for: %j, %j', (target, counts, text) => {
  const waited = waitedText({ ...ANY, ...target }, 30_049, counts);
  expect(waited).toBe(`Nobody took the message within 30 s. ${text}`);
});

test('what is required names the types', () => {
  expect(requiredText(names('a', 'b'))).toMatch(/to one of: a, b\.$/);
  expect(requiredText(names())).toMatch(/no agent is registered\.$/);
});
