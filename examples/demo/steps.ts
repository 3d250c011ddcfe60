import { setTimeout as delay } from 'node:timers/promises';
import type { Task } from '../../contracts/a2a.js';
import { AgentsGetResponse } from '../../contracts/agents.js';
import { textOf } from '../../contracts/parts.js';
import { GetEventsResponse } from '../../contracts/telemetry.js';
import { FleetClient } from '../../sdk/index.js';
import { accessFrom, type DevFile } from '../platform-access.js';
import type { Story } from './story.js';

const AGENT_TIMEOUT_MS = 60_000;
const POLL_MS = 200;

/** A platform as the demo uses it. */
export interface Visit {
  dev: DevFile;
  client: FleetClient;
}

/** A visit to the platform that `dev` describes. */
export async function connect(dev: DevFile): Promise<Visit> {
  return { dev, client: new FleetClient(await accessFrom(dev)) };
}

/** Waits until the platform's example agents have joined. */
export async function agentsReady({ client }: Visit): Promise<void> {
  for (const agent_type of ['concierge', 'librarian']) await agentReady(client, agent_type);
}

async function agentReady(client: FleetClient, agent_type: string): Promise<void> {
  const deadline = Date.now() + AGENT_TIMEOUT_MS;
  for (;;) {
    const { agents } = await client.post('/agents/get', { agent_type }, AgentsGetResponse);
    if (agents.some(({ status }) => status === 'available' || status === 'busy')) return;
    if (Date.now() > deadline) throw new Error(`no ${agent_type} has joined: is FLEET_EXAMPLES off?`);
    await delay(POLL_MS);
  }
}

export async function showToken({ client, dev }: Visit, story: Story): Promise<void> {
  story.step('A token for the first credential', `POST ${dev.base_url}/auth/get_token`);
  const [, payload = ''] = (await client.token()).split('.');
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as {
    scopes: string[];
    iat: number;
    exp: number;
  };
  story.say(`scopes ${claims.scopes.join(', ')}, valid for ${(claims.exp - claims.iat) / 3_600} h`);
}

/** @returns the session's id */
export async function openSession({ client }: Visit, story: Story): Promise<string> {
  story.step(
    'A session with the concierge, an agent connected by WebSocket',
    'POST /sessions/init {"agent_type": "concierge"}',
  );
  const session = await client.sessions.init({ agent_type: 'concierge' });
  story.say(`${session.session_id}, with ${session.instance_id}`);
  return session.session_id;
}

export async function sendMessage({ client }: Visit, story: Story, contextId: string): Promise<void> {
  const text = 'What is 12 * (3 + 4)?';
  story.step(`A message: "${text}"`, 'POST /send, method message/send');
  story.quote(answerOf(await client.send(text, { contextId })));
}

export async function streamMessage({ client }: Visit, story: Story, contextId: string): Promise<void> {
  story.step('A streamed answer: "status"', 'POST /send, method message/stream');
  let pieces = 0;
  for await (const event of client.stream('status', { contextId })) {
    if (event.kind !== 'artifact-update') continue;
    story.piece(textOf(event.artifact.parts), pieces === 0);
    pieces += 1;
  }
  story.endPieces();
  story.say(`(in ${pieces} pieces, as server-sent events)`);
}

export async function askLibrarian({ client }: Visit, story: Story): Promise<void> {
  story.step(
    'Another agent: the librarian, an A2A server that the mesh posts to',
    'POST /send, metadata {"agent_type": "librarian"}',
  );
  const text = 'table: [{"agent": "concierge", "mode": "connected"}, {"agent": "librarian", "mode": "hosted"}]';
  story.quote(answerOf(await client.send(text, { metadata: { agent_type: 'librarian' } })));
}

/** @returns the message that now waits for a human */
export async function askForRisk({ client }: Visit, story: Story, contextId: string): Promise<string> {
  const text = 'Restart the billing service';
  story.step(`A message that needs a human: "${text}"`, 'POST /send, method message/send');
  const task = await client.send(text, { contextId });
  const question = textOf(task.status.message?.parts ?? []);
  story.say(`${task.id} is ${task.status.state}`);
  story.quote(question);
  return task.id;
}

/** Shows that a message still waits. */
export async function showPending({ client }: Visit, story: Story, messageId: string): Promise<void> {
  const pending = await client.messages.pending();
  const found = pending.messages.find((message) => message.message_id === messageId);
  if (!found) throw new Error(`message ${messageId} does not wait any more`);
  story.say(`POST /messages/pending: "${found.input_request?.title}" still waits for an answer`);
}

export async function resolveMessage({ client }: Visit, story: Story, messageId: string): Promise<void> {
  story.step('The answer of a human', `POST /messages/${messageId}/resolve {"resolution": "confirmed"}`);
  const { new_state } = await client.approvals.resolve(messageId, 'confirmed');
  story.say(`accepted; the message is ${new_state}`);
  const message = await client.messages.waitFor(messageId, { until: 'terminal' });
  story.say(`${message.state} after ${((message.duration_ms ?? 0) / 1000).toFixed(1)} s, the wait included`);
  story.quote(message.assistant_output || (message.error_message ?? ''));
  if (message.state !== 'completed') throw new Error(`message ${messageId} ended as ${message.state}`);
}

export async function showEvents({ client }: Visit, story: Story, session_id: string): Promise<void> {
  story.step('What the platform recorded', 'POST /telemetry/get_events, POST /sessions/close');
  await client.sessions.close(session_id);
  const { events } = await client.post('/telemetry/get_events', { session_id, page_size: 100 }, GetEventsResponse);
  for (const event of events.reverse()) story.say(`${event.timestamp.slice(11, 23)}  ${event.event_type}`);
}

/** @param staysUp whether the platform still runs when the demo has ended */
export function showTemporal({ dev }: Visit, story: Story, messageId: string, staysUp: boolean): void {
  if (!dev.temporal_ui_url) return;
  const workflow = `message:${dev.tenant_id}:${messageId}`;
  story.step('The message as a durable workflow, in the Temporal UI');
  if (staysUp) story.say(`${dev.temporal_ui_url}/namespaces/default/workflows/${encodeURIComponent(workflow)}`);
  else
    story.say(`What the demo made stays: \`npm start\` prints the UI's address; there it is the workflow\n${workflow}`);
}

function answerOf(task: Task): string {
  const text = (task.artifacts ?? []).map((artifact) => textOf(artifact.parts)).join('\n');
  return text || textOf(task.status.message?.parts ?? []) || `(${task.status.state})`;
}
