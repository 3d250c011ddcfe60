/** Agents in a process of their own, of the types in TEST_TYPES; their work lasts until a tool of the test has answered. */
import { Agent } from '../../dist/sdk/index.js';

for (const type of (process.env.TEST_TYPES ?? 'worker').split(',')) {
  const agent = new Agent({ type, instanceId: `${type}-1`, ca: process.env.TEST_CA });
  agent.onMessage(async (task) => {
    await task.callTool('wait');
    return 'done';
  });
  await agent.connect();
}
