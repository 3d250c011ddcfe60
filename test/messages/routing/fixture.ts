import { type AcceptRow, runAcceptTransaction, UNCOUNTED } from '../../../messages/accept/accept-transaction.js';
import { draftOf } from '../../../messages/accept/draft.js';
import { sessionDeps } from '../../../messages/cancel.js';
import type { MessageCore, MessageRef } from '../../../messages/core.js';
import { createDispatches } from '../../../messages/dispatch/dispatch-store.js';
import { nextStep } from '../../../messages/supervise/next-step.js';
import type { Step } from '../../../messages/supervise/step.js';
import { newId } from '../../../runtime/ids.js';
import { createSessions } from '../../../sessions/sessions.js';
import { callerOf, insertAgent, insertTenant, messageCore } from '../../setup/core.js';
import type { FreshDatabase } from '../../setup/database.js';

/** The node that takes the messages, and that its agents are connected to. */
export const MESH = 'mesh_1';

/** The metadata of a message that says who is to take it. */
interface Wish {
  agent_type?: string;
  instance_id?: string;
  skill_id?: string;
}

/** A message on the record; `dispatch_id` is the one that the fast path offered, `by` the node that sends it. */
export type Sent = MessageRef & {
  session_id: string;
  dispatch_id: string;
  verdict: AcceptRow['verdict'];
  to: string;
  by: string;
};

interface SendOptions {
  contextId?: string;
  /** False: for the workflow path. */
  offers?: boolean;
  /** Other nodes can be reached. */
  anyMesh?: boolean;
}

/** A tenant with agents on one node, and both ways of its messages. */
export class RoutingFixture {
  readonly database: FreshDatabase;
  readonly core: MessageCore;
  readonly sessions: ReturnType<typeof createSessions>;
  readonly dispatches: ReturnType<typeof createDispatches>;
  /** The messages whose workflows were started or woken. */
  called: string[] = [];
  tenantId = '';

  constructor(database: FreshDatabase, db = database.db()) {
    this.database = database;
    this.core = messageCore(db, {
      workflowStarter: { message: ({ message_id }) => this.called.push(message_id), session: () => undefined },
    });
    this.sessions = createSessions(sessionDeps(this.core));
    this.dispatches = createDispatches(this.core);
  }

  /** A new tenant without agents. */
  async reset(): Promise<void> {
    this.called = [];
    this.tenantId = await insertTenant(this.database);
  }

  /** A connected agent for one session at a time, where its columns say nothing else. */
  agent(instance_id: string, columns: { skills?: string[]; [column: string]: unknown } = {}): Promise<void> {
    const { skills = [], ...others } = columns;
    const row = { mesh_id: MESH, connection_epoch: 1, max_concurrent_sessions: 1, ...others };
    const declared = JSON.stringify(skills.map((id) => ({ id })));
    return insertAgent(this.database, { tenant_id: this.tenantId, instance_id, skills: declared, ...row });
  }

  /** Accepts a message as the node of the agents. */
  async send(wish: Wish, { contextId, offers = true, anyMesh = false }: SendOptions = {}): Promise<Sent> {
    const parts = [{ kind: 'text' as const, text: 'hello' }];
    const message = { kind: 'message' as const, messageId: newId('req'), role: 'user' as const, parts, contextId };
    const draft = draftOf(callerOf(this.tenantId), { message, metadata: { ...wish } }, { method: 'message/send' });
    const dispatch_id = newId('dsp');
    const offer = offers ? { dispatch_id, mesh_id: MESH, any_mesh: anyMesh } : null;
    const options = { counting: UNCOUNTED, offer, idempotencyHours: 1 };
    const row = await runAcceptTransaction(this.core.db, draft, options);
    const { message_id, session_id, verdict, instance_id: to, mesh_id: by } = row;
    return { tenant_id: this.tenantId, message_id, session_id, dispatch_id, verdict, to, by };
  }

  /** One look of the message's workflow. */
  async look(ref: MessageRef): Promise<Step | null> {
    return nextStep(this.core, ref);
  }

  /** Accepts a message for which nobody has room, up to its wait. */
  async waiting(wish: Wish, contextId?: string): Promise<Sent> {
    const sent = await this.send(wish, { contextId, offers: false });
    const step = await this.look(sent);
    if (step?.kind !== 'wait_agent') throw new Error(`the message does not wait: ${JSON.stringify(step)}`);
    return sent;
  }

  /** The agent answers a dispatch that was sent. */
  async answer(ref: Sent, state: 'completed' | 'input-required' = 'completed'): Promise<void> {
    const produced = { artifacts: [], usage: null };
    const input = state === 'input-required' ? { input_request: { title: 'Go on?' } } : {};
    const end = await this.dispatches.end({ ...ref, produced }, { state, artifacts: [], ...input }, 1);
    if (!end) throw new Error('the answer was not taken');
  }
}
