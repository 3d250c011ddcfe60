import type { MessageRecord } from '../../contracts/api/messages.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import type { EventRecord } from '../../contracts/api/telemetry.js';
import { visible } from '../../contracts/visible-text.js';
import { toWire } from '../../sdk/wire/names.js';
import { type Command, type CommandInput, parse, type Shown } from '../command.js';
import { CliError } from '../fleet-store.js';
import { read, type Session } from './connection.js';
import { askPerson, dataOf } from './questions.js';
import { send } from './send.js';
import { type Cell, type Colour, distance, fields, shortened, table } from './terminal.js';
import { explain, factsOf } from './why.js';

const COLOURS: Record<string, Colour> = {
  ...{ completed: 'green', failed: 'red', canceled: 'dim', 'input-required': 'yellow', working: 'cyan' },
  ...{ available: 'green', busy: 'cyan', draining: 'yellow', unhealthy: 'red', offline: 'dim' },
  ...{ critical: 'red', warning: 'yellow' },
};

const coloured = (text: string): Cell => (COLOURS[text] ? { text, colour: COLOURS[text] } : text);
const ago = (at: string | null | undefined): string => (at ? `${distance(at)} ago` : '-');

async function agents(session: Session, { options }: CommandInput): Promise<Shown> {
  const request = parse(OPERATIONS.getAgents.request, {
    page_size: 100,
    ...(options.type !== undefined && { agent_type: options.type }),
    ...(options.status !== undefined && { status: options.status }),
  });
  const found = await read(session, OPERATIONS.getAgents, request);
  const names = ['INSTANCE', 'TYPE', 'STATUS', 'MODE', 'HAS', 'QUEUE', 'FAILED/H', 'SEEN'];
  const rows = found.agents.map((agent): Cell[] => [
    ...[agent.instance_id, agent.agent_type, coloured(agent.status), agent.deployment_mode],
    agent.max_concurrent_tasks === 0 ? `${agent.in_flight}` : `${agent.in_flight}/${agent.max_concurrent_tasks}`,
    ...[`${agent.queue_length}`, `${agent.failed_last_hour}`, ago(agent.last_seen)],
  ]);
  return { json: found, text: rows.length === 0 ? 'No agents.' : table(session.terminal, names, rows) };
}

async function pending(session: Session, { options }: CommandInput): Promise<Shown> {
  const request = { page_size: 100, ...(options.type !== undefined && { agent_type: options.type }) };
  const found = await read(session, OPERATIONS.getRequests, request);
  const names = ['ID', 'ASKED BY', 'WHAT', 'AGENT', 'SINCE', 'ENDS IN', 'YOURS'];
  const rows = found.requests.map(({ message_id, plan_id, agent_type, input_request: asked, may_answer }): Cell[] => [
    ...[message_id ?? plan_id ?? '', asked.source],
    shortened(
      asked.tool === undefined ? asked.title || asked.prompt : `${asked.tool} ${JSON.stringify(asked.arguments ?? {})}`,
      60,
    ),
    ...[agent_type ?? '-', ago(asked.requested_at), distance(asked.expires_at)],
    may_answer ? { text: 'yes', colour: 'green' } : 'no',
  ]);
  return { json: found, text: rows.length === 0 ? 'Nobody is asked anything.' : table(session.terminal, names, rows) };
}

async function listMessages(session: Session, { options }: CommandInput): Promise<Shown> {
  const request = parse(OPERATIONS.getMessages.request, {
    ...(options.state !== undefined && { state: options.state }),
    ...(options.type !== undefined && { agent_type: options.type }),
    ...(options.session !== undefined && { session_id: options.session }),
  });
  const found = await read(session, OPERATIONS.getMessages, request);
  const names = ['MESSAGE', 'STATE', 'AGENT', 'SENT', 'TEXT'];
  const rows = found.messages.map((message): Cell[] => [
    ...[message.message_id, coloured(message.state), message.instance_id ?? message.agent_type ?? '-'],
    ...[ago(message.created_at), shortened(message.error?.message ?? message.preview, 60)],
  ]);
  return { json: found, text: rows.length === 0 ? 'No messages.' : table(session.terminal, names, rows) };
}

function messageText({ terminal }: Session, message: MessageRecord): string {
  const { state, error, agent_type, instance_id } = message;
  const known = fields(terminal, {
    ...{ message: message.message_id, session: message.session_id },
    state: coloured(state),
    ...{ agent: [instance_id, agent_type].filter((text) => text !== null).join(', '), sent: message.created_at },
    ...{ ended: message.completed_at, trace: message.trace_id, error: error && `${error.code}: ${error.message}` },
    asks: message.input_request?.title,
  });
  const said = [message.user_input, message.assistant_output].filter((text) => text !== '');
  return [known, ...said.map(visible)].join('\n\n');
}

/** What an id names, by its prefix. */
const RECORDS = {
  ses_: (session: Session, session_id: string) => read(session, OPERATIONS.getSession, { session_id }),
  plan_: (session: Session, plan_id: string) => read(session, OPERATIONS.getPlan, { plan_id }),
  req_: (session: Session, request_id: string) => read(session, OPERATIONS.getRequest, { request_id }),
};

async function get(session: Session, input: CommandInput): Promise<Shown> {
  const { argument: id } = input;
  if (id === '') return listMessages(session, input);
  if (id.startsWith('msg_')) {
    const found = await read(session, OPERATIONS.getMessage, { message_id: id });
    return { json: found, text: messageText(session, found.message) };
  }
  const [, reader] = Object.entries(RECORDS).find(([prefix]) => id.startsWith(prefix)) ?? [];
  if (!reader)
    throw new CliError(`${id} is no id of a message (msg_…), session (ses_…), plan (plan_…) or request (req_…).`);
  const found = await reader(session, id);
  const { ok: _, ...record } = found;
  return { json: found, text: visible(JSON.stringify(record, null, 2)) };
}

/** The message or plan that an id names, and which request of it where the id is a request's. */
async function subjectOf(session: Session, id: string): Promise<{ id: string; requestId?: string }> {
  if (!id.startsWith('req_')) return { id };
  const { request } = await read(session, OPERATIONS.getRequest, { request_id: id });
  return { id: request.message_id ?? request.plan_id ?? '', requestId: id };
}

async function openRequestOf(session: Session, { id, requestId }: { id: string; requestId?: string }) {
  if (requestId !== undefined)
    return (await read(session, OPERATIONS.getRequest, { request_id: requestId })).request.input_request;
  const found = id.startsWith('plan_')
    ? (await read(session, OPERATIONS.getPlan, { plan_id: id })).plan
    : (await read(session, OPERATIONS.getMessage, { message_id: id })).message;
  if (!found.input_request) throw new CliError(`${id} asks nobody anything: it is ${found.state}.`);
  return found.input_request;
}

async function resolve(session: Session, { argument, second, options }: CommandInput): Promise<Shown> {
  const subject = await subjectOf(session, argument);
  const data = dataOf(options.data);
  let resolution: string | Record<string, unknown> | null | undefined = second === '' ? data : second;
  if (resolution === undefined && session.terminal.ask)
    resolution = await askPerson(session.terminal, await openRequestOf(session, subject));
  if (!resolution) throw new CliError('An answer is required: yes or no, or the values of a form as --data.');
  const { id, requestId } = subject;
  const answer = await session.client.messages.resolve(id, {
    resolution,
    ...(requestId !== undefined && { requestId }),
    ...(options.comment !== undefined && { comment: options.comment }),
    ...(second !== '' && data && { data }),
  });
  return {
    json: toWire(answer, { resolution: true }),
    text: `${id} is ${answer.newState}.`,
  };
}

async function cancel({ client }: Session, { argument: messageId }: CommandInput): Promise<Shown> {
  const answer = await client.messages.cancel({ messageId });
  return { json: toWire(answer), text: `${messageId} is canceled.` };
}

async function why(session: Session, { argument }: CommandInput): Promise<Shown> {
  const facts = await factsOf(session, argument);
  const sentences = explain(facts);
  const { message_id, state, waits_for, error, input_request } = facts.message;
  return {
    json: { message_id, state, sentences, waits_for, error, input_request },
    text: visible(sentences.join('\n')),
  };
}

function eventLine({ terminal }: Session, { timestamp, event_type, severity, event }: EventRecord): string {
  const about = Object.entries(event).flatMap(([name, value]) =>
    value === null || value === '' ? [] : [`${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`],
  );
  const type = COLOURS[severity] ? terminal.paint(COLOURS[severity], event_type) : visible(event_type);
  return `${terminal.paint('dim', timestamp)}  ${type}  ${visible(shortened(about.join(' '), 200))}`;
}

/** Follows events until the process is ended. */
async function tail(session: Session, { options }: CommandInput): Promise<Shown> {
  const { client, terminal, json } = session;
  const events = client.telemetry.streamEvents({
    ...(options.session !== undefined && { sessionId: options.session }),
    ...(options.message !== undefined && { messageId: options.message }),
    ...(options.agent !== undefined && { instanceId: options.agent }),
    ...(options.type !== undefined && { type: options.type }),
  });
  for await (const event of events) {
    const record = toWire(event) as EventRecord;
    terminal.write(`${json ? JSON.stringify(record) : eventLine(session, record)}\n`);
  }
  return { text: '' };
}

/** Commands for people and scripts: they call the API of any platform with a credential. */
export const CLIENT_COMMANDS: Record<string, Command> = {
  send: {
    usage: 'AGENT TEXT [--session ID]',
    summary:
      'send a message to an agent or agent type and show the answer as it comes; - reads the text from standard input',
    arguments: [2, 2],
    options: ['session'],
    runClient: send,
  },
  get: {
    usage: '[ID] [--state STATE] [--type TYPE] [--session ID]',
    summary: 'show a message, session, plan or request; without an id, the newest messages',
    arguments: [0, 1],
    options: ['state', 'type', 'session'],
    runClient: get,
  },
  why: {
    usage: 'MESSAGE_ID',
    summary: 'say what a message waits for, or why it failed',
    arguments: [1, 1],
    runClient: why,
  },
  agents: {
    usage: '[--type TYPE] [--status STATUS]',
    summary: 'list the agents with what they have to do',
    options: ['type', 'status'],
    runClient: agents,
  },
  pending: {
    usage: '[--type TYPE]',
    summary: 'list what people are asked, the longest waiting first',
    options: ['type'],
    runClient: pending,
  },
  resolve: {
    usage: 'ID [yes|no] [--data JSON] [--comment TEXT]',
    summary: 'answer what a message, plan or request asks; without an answer, ask for it in the terminal',
    arguments: [1, 2],
    options: ['data', 'comment'],
    runClient: resolve,
  },
  cancel: { usage: 'MESSAGE_ID', summary: 'cancel a message', arguments: [1, 1], runClient: cancel },
  tail: {
    usage: '[--session ID] [--message ID] [--agent INSTANCE] [--type TYPE]',
    summary: 'follow the events of the tenant, or of one session, message or agent',
    options: ['session', 'message', 'agent', 'type'],
    runClient: tail,
  },
};
