/** An agent in a process of its own, whose work lasts until a tool of the test has answered. */
import { Agent } from '../../dist/sdk/index.js';

const agent = new Agent({ type: 'worker', instanceId: 'worker-1', ca: process.env.TEST_CA });
agent.onMessage(async (task) => {
  await task.callTool('wait');
  return 'done';
});
await agent.connect();
