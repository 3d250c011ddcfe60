import { expect, test } from 'vitest';
import { DEFAULT_CLOCKS } from '../../../../runtime/clocks.js';
import type { Behaviour } from '../../../setup/agent.js';
import { JournalingAgent } from '../../../setup/platform/fleet.js';
import { startBarePlatform } from '../../../setup/platform/platform.js';
import { until } from '../../../setup/until.js';

/** Than a node may stand still before others take it for dead. */
const LONGER_MS = DEFAULT_CLOCKS.deadNodeMs + 5_000;

const platform = await startBarePlatform();
/** Dispatches that the agent is still on; each call answers one. */
const held: (() => void)[] = [];
const holding: Behaviour = (dispatch) => void held.push(() => dispatch.result(`done: ${dispatch.text}`));

async function send(text: string): Promise<string> {
  const task = await platform.client.send(text, { metadata: { agent_type: 'patient' }, blocking: false });
  return task.id;
}

test('a platform that stands still, alone, for longer than a node may costs no message that an agent is on', async () => {
  const options = { instanceId: 'patient-1', agentType: 'patient', maxConcurrentSessions: 0 };
  const agent = await new JournalingAgent(platform, options, holding).start();
  const ids = await Promise.all(['a', 'b', 'c', 'd'].map(send));
  await until(() => held.length === ids.length, { what: 'the dispatches' });
  const began = performance.now();
  platform.pause();
  await until(() => performance.now() - began > LONGER_MS, { timeoutMs: 2 * LONGER_MS });
  platform.resume();
  for (const answer of held) answer();
  for (const id of ids) await until(async () => (await platform.client.message(id)).state === 'completed');
  expect(agent.journal.map((entry) => entry.message_id).sort()).toEqual(ids.sort());
  await agent.stop();
}, 120_000);
