import { expect, test } from 'vitest';
import { messageParams } from '../../sdk/client/send/send-options.js';
import type { SendOptions } from '../../sdk/index.js';
import { Agent, FleetClient } from '../../sdk/index.js';

test('options of routing go into the metadata of the wire, beside the caller’s own', () => {
  const options: SendOptions = {
    agentType: 'shop',
    skillId: 'sell',
    args: { itemId: 1, own_name: 2 },
    deadlineMs: 5_000,
    queueWaitMs: 60_000,
    acceptedOutputModes: ['text/plain'],
    metadata: { orderId: 7, own_name: 'kept' },
  };
  expect(messageParams('hi', 'm1', options)).toEqual({
    message: { kind: 'message', messageId: 'm1', role: 'user', parts: [{ kind: 'text', text: 'hi' }] },
    metadata: {
      agent_type: 'shop',
      skill_id: 'sell',
      args: { itemId: 1, own_name: 2 },
      deadline_ms: 5_000,
      queue_wait_ms: 60_000,
      accepted_output_modes: ['text/plain'],
      orderId: 7,
      own_name: 'kept',
    },
  });
  expect(messageParams('hi', 'm1', {})).not.toHaveProperty('metadata');
});

test('an option that is misplaced does not compile, and is refused where nothing compiles', () => {
  // @ts-expect-error an option of routing in metadata
  const camel: SendOptions = { metadata: { agentType: 'shop' } };
  // @ts-expect-error its name on the wire
  const snake: SendOptions = { metadata: { skill_id: 'sell' } };
  // @ts-expect-error an option of the message in metadata
  const own: SendOptions = { metadata: { contextId: 'ses_1' } };
  // @ts-expect-error the name of the wire
  const unknown: SendOptions = { agent_type: 'shop' };
  const fine: SendOptions = { metadata: { anything: 'else', nested: { agent_type: 'shop' } } };
  expect(() => messageParams('hi', 'm1', camel)).toThrow('metadata.agentType is the option `agentType`');
  expect(() => messageParams('hi', 'm1', snake)).toThrow('metadata.skill_id is the option `skillId`');
  expect(() => messageParams('hi', 'm1', own)).toThrow(TypeError);
  expect(() => messageParams('hi', 'm1', unknown)).toThrow(
    'a message has no option `agent_type`: the options are agentType,',
  );
  expect(messageParams('hi', 'm1', fine)).toHaveProperty('metadata.nested.agent_type', 'shop');
});

test('an option that an agent or a client does not have is refused', () => {
  // @ts-expect-error the name of the wire
  expect(() => new Agent({ type: 'shop', max_concurrent_tasks: 1 })).toThrow(
    /^an Agent has no option `max_concurrent_tasks`: the options are url, .*maxConcurrentTasks/,
  );
  // @ts-expect-error the name of the environment
  expect(() => new FleetClient({ baseUrl: 'http://127.0.0.1' })).toThrow(
    'a FleetClient has no option `baseUrl`: the options are url, clientId, clientSecret, token, ca, agentType.',
  );
});
