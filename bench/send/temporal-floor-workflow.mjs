/** The workflow of the Temporal floor: a local activity, an activity on a second queue, a local activity. */
import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';

const options = { startToCloseTimeout: '30s' };
const { accept, finish } = proxyLocalActivities(options);

/** @param {{ messageId: string, agentQueue: string }} input */
export async function bareMessage({ messageId, agentQueue }) {
  await accept(messageId);
  await proxyActivities({ ...options, taskQueue: agentQueue }).dispatch(messageId);
  await finish(messageId);
}
