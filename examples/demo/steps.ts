import { setTimeout as delay } from 'node:timers/promises';
import { type AlertRule, FleetClient, type Task, textOf, textStream } from '../../sdk/index.js';
import { accessFrom, type DevFile } from '../platform-access.js';
import type { Printer } from './printer.js';
import type { WebhookReceiver } from './webhook-receiver.js';

const AGENT_TIMEOUT_MS = 60_000;
const POLL_MS = 200;
/** A change of a policy is in force everywhere after this. */
const POLICY_IN_FORCE_MS = 1_000;

/** A connection to a platform. */
export interface Connection {
  dev: DevFile;
  client: FleetClient;
}

/** Connects to the platform that `dev` describes. */
export async function connect(dev: DevFile): Promise<Connection> {
  return { dev, client: new FleetClient(await accessFrom(dev)) };
}

/** Waits until the platform's example agents have joined. */
export async function agentsReady({ client }: Connection): Promise<void> {
  for (const agentType of ['concierge', 'librarian']) await agentReady(client, agentType);
}

async function agentReady(client: FleetClient, agentType: string): Promise<void> {
  const deadline = Date.now() + AGENT_TIMEOUT_MS;
  for (;;) {
    const { agents } = await client.agents.get({ agentType });
    if (agents.some(({ status }) => status === 'available' || status === 'busy')) return;
    if (Date.now() > deadline) throw new Error(`no ${agentType} has joined: is FLEET_EXAMPLES off?`);
    await delay(POLL_MS);
  }
}

export async function showToken({ client, dev }: Connection, printer: Printer): Promise<void> {
  printer.step('A token for the first credential', `POST ${dev.base_url}/auth/get_token`);
  const [, payload = ''] = (await client.token()).split('.');
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as {
    scopes: string[];
    iat: number;
    exp: number;
  };
  printer.line(`scopes ${claims.scopes.join(', ')}, valid for ${(claims.exp - claims.iat) / 3_600} h`);
}

/** @returns the session's id */
export async function openSession({ client }: Connection, printer: Printer): Promise<string> {
  printer.step(
    'A session with the concierge, an agent connected by WebSocket',
    'POST /sessions/init {"agent_type": "concierge"}',
  );
  const session = await client.sessions.init({ agentType: 'concierge' });
  printer.line(`${session.sessionId}, with ${session.instanceId}`);
  return session.sessionId;
}

export async function sendMessage({ client }: Connection, printer: Printer, contextId: string): Promise<void> {
  const text = 'What is 12 * (3 + 4)?';
  printer.step(`A message: "${text}"`, 'POST /send, method message/send');
  printer.quote(answerOf(await client.send(text, { contextId })));
}

export async function streamMessage({ client }: Connection, printer: Printer, contextId: string): Promise<void> {
  printer.step('A streamed answer: "status"', 'POST /send, method message/stream');
  let chunks = 0;
  for await (const text of textStream(client.stream('status', { contextId }))) {
    printer.chunk(text, chunks === 0);
    chunks += 1;
  }
  printer.endChunks();
  printer.line(`(in ${chunks} chunks, as server-sent events)`);
}

export async function askLibrarian({ client }: Connection, printer: Printer): Promise<void> {
  printer.step('Another agent: the librarian, a hosted A2A server', 'POST /send, metadata {"agent_type": "librarian"}');
  const text = 'table: [{"agent": "concierge", "mode": "connected"}, {"agent": "librarian", "mode": "hosted"}]';
  printer.quote(answerOf(await client.send(text, { agentType: 'librarian' })));
}

/** Creates the policy that holds a tool call for approval. @returns its id */
export async function holdNotices({ client }: Connection, printer: Printer): Promise<string> {
  printer.step(
    'A policy: whatever agent publishes a notice, a human approves it first',
    'POST /policies/create_policy {"scope": "tool", "decision": "require_approval", "match": {"tools": ["publish_notice"]}}',
  );
  const policy = {
    scope: 'tool' as const,
    name: 'Notices are approved',
    decision: 'require_approval' as const,
    match: { tools: ['publish_notice'] },
    reason: 'Everybody reads the board.',
  };
  const { policyId } = (await client.policies.createPolicy(policy)).policy;
  printer.line(`${policyId} is in force on every node within a second`);
  await delay(POLICY_IN_FORCE_MS);
  return policyId;
}

/** Creates the alert rule by which another system learns of approvals. */
export async function subscribe(
  { client }: Connection,
  printer: Printer,
  receiver: WebhookReceiver,
): Promise<AlertRule> {
  printer.step(
    'Another system wants to know of whatever waits for a human',
    'POST /policies/new_alert, condition {"event": "message.input_required"}',
  );
  const rule = await receiver.subscribe(client);
  printer.line(`${rule.ruleId} delivers to ${rule.notifications[0]?.config.url}`);
  return rule;
}

export async function showEvents({ client }: Connection, printer: Printer, sessionId: string): Promise<void> {
  printer.step('The recorded events', 'POST /telemetry/get_events, POST /sessions/close');
  await client.sessions.close({ sessionId });
  const { events } = await client.telemetry.getEvents({ sessionId, pageSize: 100 });
  for (const event of events.reverse()) printer.line(`${event.timestamp.slice(11, 23)}  ${event.eventType}`);
}

/** @param staysUp whether the platform keeps running after the demo */
export function showWhereToLook({ dev }: Connection, printer: Printer, messageId: string, staysUp: boolean): void {
  const workflow = `message:${dev.tenant_id}:${messageId}`;
  printer.step('The message in the console, and as a durable workflow in the Temporal UI');
  if (!staysUp) {
    printer.line('The data of the demo is kept: `npm start` prints a link into the console and the address of the UI.');
    printer.line(`message ${messageId}\nworkflow ${workflow}`);
    return;
  }
  printer.line(`${dev.base_url}/console/messages/${messageId}`);
  if (dev.temporal_ui_url)
    printer.line(`${dev.temporal_ui_url}/namespaces/default/workflows/${encodeURIComponent(workflow)}`);
}

function answerOf(task: Task): string {
  return textOf(task) || `(${task.status.state})`;
}
