import type { Caller } from '../../contracts/api/auth.js';
import type { Db } from '../../db/pool.js';
import {
  type AcceptHook,
  type AcceptRow,
  type CountLimits,
  runAcceptTransaction,
  UNCOUNTED,
} from '../../messages/accept/accept-transaction.js';
import { draftOf } from '../../messages/accept/draft.js';
import { sessionDeps } from '../../messages/cancel.js';
import type { MessageCore, MessageRef } from '../../messages/core.js';
import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import type { AnswerOrFailure, DispatchRef, OpenDispatch } from '../../messages/dispatch/dispatches.js';
import { createQueues } from '../../messages/dispatch/queues.js';
import { newId } from '../../runtime/ids.js';
import { createSessions } from '../../sessions/sessions.js';
import { callerOf, insertAgent, insertTenant, messageCore, textMessage } from './core.js';
import type { FreshDatabase } from './database.js';
import { createGateway } from './gateway.js';
import { type Look, lookAt, stepAndTake } from './take.js';

/** The node that takes the messages, and that its agents are connected to. */
export const MESH = 'mesh_1';

const NOTHING = { artifacts: [], usage: null };

/** The metadata of a message that says who is to take it. */
interface Wish {
  agent_type?: string;
  instance_id?: string;
  skill_id?: string;
  queue_wait_ms?: number;
  user_id?: string;
}

/** A message on the record, with the dispatch that its node offered. */
export interface Sent extends DispatchRef, Pick<OpenDispatch, 'session_id' | 'produced'> {
  verdict: AcceptRow['verdict'];
  /** The agent, and the node that sends it; null for none. */
  to: string | null;
  by: string | null;
  /** The id of a new message, whatever the record has. */
  newId: string;
}

interface SendOptions {
  contextId?: string;
  messageId?: string;
  text?: string;
  hook?: AcceptHook;
  counting?: CountLimits;
  /** The type of the agent that sends it; a credential where nothing is said. */
  sender?: string;
  /** The user that the sender's token is limited to. */
  limitedTo?: string;
  traceparent?: string;
  /** False: it joins a queue. */
  offers?: boolean;
  /** Other nodes can be reached. */
  reachesNodes?: boolean;
}

interface FixtureOptions {
  /** Another way to the same database. */
  db?: Db;
  limits?: Partial<MessageCore['limits']>;
}

/** A tenant with agents on one node, and what moves its messages: the transactions of the API, of workflows and of nodes. */
export class RecordFixture {
  readonly database: FreshDatabase;
  readonly core: MessageCore;
  readonly gateway: ReturnType<typeof createGateway>;
  readonly sessions: ReturnType<typeof createSessions>;
  readonly dispatches: ReturnType<typeof createDispatches>;
  /** The messages that were to be taken a step further. */
  advanced: string[] = [];
  /** The agents whose nodes were told that they may have room. */
  filled: string[] = [];
  /** The canceled messages whose nodes were told. */
  stopped: string[] = [];
  tenantId = '';

  constructor(database: FreshDatabase, { db = database.db(), limits }: FixtureOptions = {}) {
    this.database = database;
    this.core = messageCore(db, {
      advance: ({ message_id }) => this.advanced.push(message_id),
      nodes: {
        fill: ({ instance_id }) => this.filled.push(instance_id),
        look: () => undefined,
        cancel: ({ message_id }) => this.stopped.push(message_id),
      },
      ...(limits && { limits }),
    });
    this.gateway = createGateway(this.core);
    this.sessions = createSessions(sessionDeps(this.core));
    this.dispatches = createDispatches(this.core);
  }

  /** A new tenant without agents. */
  async reset(): Promise<void> {
    Object.assign(this, { advanced: [], filled: [], stopped: [] });
    this.tenantId = await insertTenant(this.database);
  }

  get caller(): Caller {
    return callerOf(this.tenantId);
  }

  /** A connected agent for one session at a time, where its columns say nothing else. */
  agent(instance_id: string, columns: { skills?: string[]; [column: string]: unknown } = {}): Promise<void> {
    const { skills = [], ...others } = columns;
    const row = { mesh_id: MESH, connection_epoch: 1, max_concurrent_sessions: 1, ...others };
    const declared = JSON.stringify(skills.map((id) => ({ id })));
    return insertAgent(this.database, { tenant_id: this.tenantId, instance_id, skills: declared, ...row });
  }

  /** Changes columns of all agents of the tenant. */
  setAgents(assignments: string): Promise<unknown> {
    return this.database.query(`UPDATE agents SET ${assignments} WHERE tenant_id = $1`, [this.tenantId]);
  }

  /** How many sessions count on an agent. */
  load(instance_id: string): Promise<number | undefined> {
    return this.database.value('SELECT agent_load($1, $2)', [this.tenantId, instance_id]);
  }

  /** A session as `/sessions/init` opens it, that reserves its place. @returns its id */
  async open(agent_type = 'worker', ordered = false, reserve = true): Promise<string> {
    const wish = { agent_type, idle_timeout_seconds: 0, ordered, reserve };
    return (await this.sessions.init(this.caller, wish)).session.session_id;
  }

  /** Accepts a message as the node of the agents. */
  async send(wish: Wish = {}, options: SendOptions = {}): Promise<Sent> {
    const { contextId, messageId = newId('req'), text, hook, counting = UNCOUNTED } = options;
    const { offers = true, reachesNodes: reaches_nodes = false, sender, limitedTo: user_id, traceparent } = options;
    const params = { message: textMessage(text, { contextId, messageId }), metadata: { ...wish } };
    const caller = { ...this.caller, ...(sender && { agent_type: sender }), ...(user_id && { user_id }) };
    const draft = { ...draftOf(caller, params, { method: 'message/send', ...(traceparent && { traceparent }) }), hook };
    const dispatch_id = newId('dsp');
    const offer = offers ? { dispatch_id, mesh_id: MESH, reaches_nodes } : { reaches_nodes };
    const row = await runAcceptTransaction(this.core.db, draft, { counting, offer, idempotencyHours: 1 });
    const { message_id, session_id, verdict, instance_id: to, mesh_id: by } = row;
    const of = { tenant_id: this.tenantId, message_id, session_id, dispatch_id, produced: NOTHING };
    return { ...of, verdict, to, by, newId: draft.message_id };
  }

  /** Accepts a message that no agent gets at once. */
  queue(wish: Wish = {}, contextId?: string): Promise<Sent> {
    return this.send(wish, { contextId, offers: false });
  }

  /** One step of the message, after so long; agents with room then take what waits. */
  look(ref: MessageRef, afterMs = 0): Promise<Look | null> {
    return lookAt(this.core, ref, { meshId: MESH, now: () => new Date(Date.now() + afterMs) });
  }

  /** What the message waits for then; `done` when it is over. */
  async kind(ref: MessageRef, afterMs = 0): Promise<Look['kind'] | undefined> {
    return (await this.look(ref, afterMs))?.kind;
  }

  /** Accepts a message for which nobody has room, up to its wait. */
  async waiting(wish: Wish, contextId?: string): Promise<Sent> {
    const sent = await this.queue(wish, contextId);
    const kind = await this.kind(sent);
    if (kind !== 'room' && kind !== 'turn') throw new Error(`the message does not wait: ${kind}`);
    return sent;
  }

  /** The message's dispatch at its agent, which takes it first where none has it. */
  async dispatched(ref: MessageRef, paused?: string): Promise<OpenDispatch> {
    const { step, open } = await stepAndTake(this.core, ref, { meshId: MESH, ...(paused !== undefined && { paused }) });
    if (!open) throw new Error(`no dispatch: ${JSON.stringify(step)}`);
    return open;
  }

  /** What an agent of the node takes that waits. @returns the ids of the messages */
  async takes(instance_id: string, atMost = 1): Promise<string[]> {
    const by = { mesh_id: MESH, epoch: 1, as_open: false };
    const ids = Array.from({ length: atMost }, () => newId('dsp'));
    const taken = await createQueues(this.core).take({ tenant_id: this.tenantId, instance_id }, by, ids);
    return taken.map(({ message_id }) => message_id);
  }

  /** The agent answers the message's dispatch. */
  async answer(ref: MessageRef, answer: 'completed' | 'input-required' | AnswerOrFailure = 'completed'): Promise<void> {
    const dispatch = await this.dispatched(ref);
    const input = answer === 'input-required' ? { input_request: { title: 'Go on?' } } : {};
    const result = typeof answer === 'string' ? { state: answer, artifacts: [], ...input } : answer;
    const end = await this.dispatches.end(dispatch, result, dispatch.epoch);
    if (!end) throw new Error('the answer was not taken');
  }

  /** A human confirms what the agent asked. */
  confirm(ref: MessageRef): Promise<unknown> {
    return this.gateway.resolve(this.caller, ref.message_id, { resolution: 'confirmed' });
  }
}
