import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { messageWorkflowId } from '../../../../workflows/definitions.js';
import type { Behaviour } from '../../../setup/agent.js';
import { JournalingAgent } from '../../../setup/platform/fleet.js';
import { PATHS } from '../../../setup/platform/paths.js';
import { startBarePlatform } from '../../../setup/platform/platform.js';
import type { TestPlatform } from '../../../setup/platform/platform-process.js';
import { until } from '../../../setup/until.js';

let platform: TestPlatform;
let agent: JournalingAgent;
/** Dispatches that the agent is still on; each call answers one. */
const held: (() => void)[] = [];
const holding: Behaviour = (dispatch) => void held.push(() => dispatch.result(`done: ${dispatch.text}`));

async function send(text: string): Promise<string> {
  const task = await platform.client.send(text, { metadata: { agent_type: 'patient' }, blocking: false });
  return task.id;
}

function workflowOf(temporal: Client, messageId: string) {
  const { tenant_id } = platform.devJson();
  return temporal.workflow.getHandle(messageWorkflowId({ tenant_id, message_id: messageId }));
}

/** Whether the message's workflow waits for the node that holds the dispatch. */
async function supervised(temporal: Client, messageId: string): Promise<boolean> {
  const { raw } = await workflowOf(temporal, messageId).describe();
  return (raw.pendingActivities ?? []).some((activity) => activity.lastStartedTime);
}

/** Whether the server has given up on the first activity of the message's workflow. */
async function timedOut(temporal: Client, messageId: string): Promise<boolean> {
  const { events } = await workflowOf(temporal, messageId).fetchHistory();
  return (events ?? []).some((event) => event.activityTaskTimedOutEventAttributes);
}

describe.each(PATHS)('$way', ({ env }) => {
  beforeAll(async () => {
    held.length = 0;
    platform = await startBarePlatform(env);
    const options = { instanceId: 'patient-1', agentType: 'patient', maxConcurrentSessions: 0 };
    agent = await new JournalingAgent(platform, options, holding).start();
  });
  afterAll(async () => {
    await agent?.stop();
    await platform?.stop();
  });

  test('a platform that stands still until Temporal gives its dispatches up costs no message that an agent is on', async () => {
    const ids = await Promise.all(['a', 'b', 'c', 'd'].map(send));
    await until(() => held.length === ids.length, { what: 'the dispatches' });
    const connection = await Connection.connect({ address: platform.devJson().temporal_address });
    const temporal = new Client({ connection });
    const all = async (holds: typeof timedOut) =>
      (await Promise.all(ids.map((id) => holds(temporal, id)))).every(Boolean);
    await until(() => all(supervised), { what: 'the workflow of each message' });
    platform.pause();
    try {
      await until(() => all(timedOut), { timeoutMs: 40_000, what: 'dispatches that Temporal gave up on' });
    } finally {
      platform.resume();
      await connection.close();
    }
    for (const answer of held) answer();
    for (const id of ids) await until(async () => (await platform.client.message(id)).state === 'completed');
    expect(agent.journal.map((entry) => entry.message_id).sort()).toEqual(ids.sort());
  }, 120_000);
});
