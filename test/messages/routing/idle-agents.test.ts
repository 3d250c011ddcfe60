import { expect, test } from 'vitest';
import { IdleAgents } from '../../../messages/dispatch/idle-agents.js';

test('an agent that is idle again goes behind the others, also where as many are remembered as may be', () => {
  const idle = new IdleAgents();
  const add = (instance_id: string) => idle.add({ tenant_id: 'ten_1', agent_type: 'worker', instance_id });
  for (let place = 0; place < 1_000; place += 1) add(`agent-${place}`);
  add('one-too-many');
  add('agent-0');
  const all = idle.some('ten_1', 'worker', 2_000);
  expect(all).toHaveLength(1_000);
  expect([all[0], all.at(-1)]).toEqual(['agent-1', 'agent-0']);
  expect(all).not.toContain('one-too-many');
});
