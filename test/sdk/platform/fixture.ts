import { readFileSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import { Agent, type AgentOptions, FleetClient, type FleetClientOptions } from '../../../sdk/index.js';
import type { DevJson } from '../../setup/platform/platform-process.js';

/** Callers and agents of a platform, with the credentials that it makes for each. They end with the test. */
export function sdkOn(devJson: () => DevJson) {
  const caller = (options: FleetClientOptions = {}): FleetClient => {
    const { base_url: url, client_id: clientId, client_secret: clientSecret } = devJson();
    const client = new FleetClient({ url, clientId, clientSecret, ...options });
    onTestFinished(() => client.destroy());
    return client;
  };
  const agentOf = (type: string, options: Partial<AgentOptions> = {}): Agent => {
    const { base_url: url, agent_client_id: clientId, agent_client_secret: clientSecret, ca_file } = devJson();
    const access = { url, clientId, clientSecret, ca: readFileSync(ca_file, 'utf8') };
    const agent = new Agent({
      ...access,
      type,
      instanceId: `${type}-1`,
      drainOnSignals: false,
      retryPauseMs: 50,
      ...options,
    });
    onTestFinished(() => agent.close(0).catch(() => undefined));
    return agent;
  };
  return { caller, agentOf };
}

export const join = (agent: Agent, mode: string) => (mode === 'hosted' ? agent.serve() : agent.connect());
