/** Runs agents of the types in TEST_TYPES in a separate process. Each message waits for a tool of the test. */
import { Agent } from '../../dist/sdk/index.js';

for (const type of (process.env.TEST_TYPES ?? 'worker').split(',')) {
  const agent = new Agent({ type, instanceId: `${type}-1`, ca: process.env.TEST_CA });
  agent.onMessage(async (task) => {
    await task.callTool('wait');
    return 'done';
  });
  await agent.connect();
}
