import { expect, test } from 'vitest';
import { type Agent, AgentStoppedError } from '../../../sdk/index.js';
import { wireAgent } from './agent.js';
import { runScenario, SCENARIOS, type WireAgent } from './runner.js';

/** The agent in this process. */
function inThisProcess(): WireAgent {
  let agent: Agent;
  let over: Promise<string | null>;
  const code = (error: unknown) => {
    expect(error).toBeInstanceOf(AgentStoppedError);
    return (error as AgentStoppedError).code;
  };
  return {
    start: (url, ca) => {
      agent = wireAgent(url, ca);
      over = agent.connect().then(() => agent.closed.then(() => null, code), code);
    },
    close: (graceSeconds) => void agent.close(graceSeconds).catch(() => undefined), // `ended` has the reason
    ended: () => over,
  };
}

test.each(SCENARIOS)('the TypeScript SDK: $name', async (scenario) => {
  await runScenario(scenario, inThisProcess());
});
