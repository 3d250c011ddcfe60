import { onTestFinished } from 'vitest';
import { Agent, type AgentLog, type AgentOptions, type ConnectionEvents, ToolError } from '../../sdk/index.js';
import { MeshServer } from './mesh-server.js';

/** A line of an agent's log. */
export interface Line {
  level: keyof AgentLog;
  text: string;
  [field: string]: unknown;
}

/** An agent that has not joined yet, with its warnings and errors, what it reported, and the connections that it lost. Closed with the test. */
export function agentWith(options: Partial<AgentOptions>) {
  const lines: Line[] = [];
  const errors: Error[] = [];
  const lost: ConnectionEvents['disconnected'][] = [];
  const write = (level: Line['level']) => (fields: object, text: string) => void lines.push({ level, text, ...fields });
  const credential = { clientId: 'cred_1', clientSecret: 'secret' };
  const agent = new Agent({
    ...(options.token === undefined && credential),
    type: 'shop',
    instanceId: 'shop-1',
    drainOnSignals: false,
    retryPauseMs: 50,
    log: { debug() {}, info() {}, warn: write('warn'), error: write('error') },
    onError: (error) => void errors.push(error),
    ...options,
  });
  agent.on('disconnected', (detail) => lost.push(detail));
  onTestFinished(() => agent.close(0).catch(() => undefined)); // a test may have ended it with an error
  return { agent, lines, errors, lost };
}

/** An agent for a fake platform, which it has not joined yet. */
export async function agentOn(
  change: (mesh: MeshServer) => void = () => undefined,
  options: Partial<AgentOptions> = {},
) {
  const mesh = await MeshServer.start();
  change(mesh);
  return { mesh, ...agentWith({ url: mesh.baseUrl, ca: mesh.ca, ...options }) };
}

/** An agent that has joined a fake platform. */
export async function joined(
  prepare: (agent: Agent) => void,
  options: Partial<AgentOptions> = {},
  change: (mesh: MeshServer) => void = () => undefined,
) {
  const made = await agentOn(change, options);
  prepare(made.agent);
  await made.agent.connect();
  return made;
}

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** The code with which a task or a call was ended. */
export function codeOf({ reason }: AbortSignal): string {
  return reason instanceof ToolError ? reason.code : (reason as Error).message;
}

/** The payload of a call of one of the agent's tools. */
export const delivery = (tool: string, args: object = {}) => ({
  tool,
  arguments: args,
  dispatch_id: 'call_1',
  session_id: 'ses_1',
  deadline_ms: 10_000,
  idempotency_key: 'key-1',
  caller: { agent_type: 'clerk', instance_id: 'clerk-1' },
});
