import { expect, test } from 'vitest';
import { createRecordActivities } from '../../../../activities/record.js';
import { FLEET_QUEUE, type MessageInput, messageWorkflowId, WAKE_SIGNAL } from '../../../../contracts/workflows.js';
import { takeStep } from '../../../../messages/supervise/next-step.js';
import { createDataConverter } from '../../../../runtime/payload-codec.js';
import { serveApi } from '../../../api/served-api.js';
import { approvalsFixture } from '../../../messages/approvals/approvals-fixture.js';
import { cleanUp } from '../../../setup/clean-up.js';
import { TEST_SECRETS } from '../../../setup/core.js';
import { until } from '../../../setup/until.js';
import { runWorker } from '../../../setup/worker.js';
import { startTimeSkipping } from '../../../time-skipping.js';

const HOUR_MS = 3_600_000;

const api = await serveApi();
const { held, outcome, events, ref } = await approvalsFixture(api);
const dataConverter = createDataConverter(TEST_SECRETS, { FLEET_TEMPORAL_ENCRYPTION: 'on' });
/** A server on which a day passes in no time. */
const environment = await startTimeSkipping(dataConverter);
cleanUp(() => environment.teardown());
/** The moment at which a workflow began, by the two clocks: the record's goes on by the server's from there. */
let began = { server: 0, record: 0 };

/** A step of the record, by the clock of the server. */
async function nextStep(input: MessageInput) {
  const now = new Date(began.record + (await environment.currentTimeMs()) - began.server);
  return (await takeStep(api.core, input, 'workflow', () => now)).step;
}
await runWorker({
  connection: environment.nativeConnection,
  taskQueue: FLEET_QUEUE,
  dataConverter,
  activities: { ...createRecordActivities(api.core), nextStep },
});

async function start(messageId: string) {
  const { session_id } = await api.client.message(messageId);
  const input: MessageInput = { ...ref(messageId), session_id };
  began = { server: await environment.currentTimeMs(), record: Date.now() };
  return environment.client.workflow.start('message', {
    taskQueue: FLEET_QUEUE,
    workflowId: messageWorkflowId(input),
    args: [input],
  });
}

const countOf = async (id: string, type: string) => (await events(id, type)).length;

test('a request is reminded of every hour by durable timers, escalates, and is refused after 24 hours', async () => {
  const id = await held({ timeout_seconds: 86_400, reminder_seconds: 3_600, escalate_to: ['cred_boss'] });
  const workflow = await start(id);
  expect(await workflow.result()).toMatchObject({ state: 'failed', error: { code: 'APPROVAL_EXPIRED' } });
  expect((await environment.currentTimeMs()) - began.server).toBeGreaterThanOrEqual(23.9 * HOUR_MS);
  // One when it was asked, and one for each whole hour before the end.
  expect(await countOf(id, 'policy.approval_required')).toBe(24);
  expect(await countOf(id, 'message.input_required')).toBe(24);
  const request = 'SELECT approvers, state FROM input_requests WHERE message_id = $1';
  expect(await api.database.query(request, [id])).toEqual([{ approvers: ['cred_boss'], state: 'expired' }]);
  expect((await api.client.message(id)).error?.code).toBe('APPROVAL_EXPIRED');
});

test('a rejection after hours ends the workflow at once, also when its wake-up is repeated', async () => {
  const id = await held({ timeout_seconds: 86_400, reminder_seconds: 7_200 });
  const workflow = await start(id);
  await until(async () => (await countOf(id, 'message.input_required')) === 1);
  await environment.sleep('5 hours');
  await until(async () => (await countOf(id, 'message.input_required')) === 3);
  expect(await outcome(api.client, id, { resolution: 'rejected' })).toBe('200 failed');
  // The process died before it could tell: what the sweeper finds is the decision of which the workflow has not heard.
  const due = 'SELECT wake_requested_at IS NOT NULL FROM input_requests WHERE message_id = $1';
  expect(await api.database.value(due, [id])).toBe(true);
  await workflow.signal(WAKE_SIGNAL);
  await workflow.signal(WAKE_SIGNAL);
  expect(await workflow.result()).toMatchObject({ state: 'failed', error: { code: 'APPROVAL_REJECTED' } });
  expect(await countOf(id, 'message.input_required')).toBe(3);
  expect(await api.database.query('SELECT 1 FROM running_messages WHERE message_id = $1', [id])).toEqual([]);
});
