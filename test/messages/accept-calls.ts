import { beforeEach } from 'vitest';
import {
  type AcceptHook,
  type CountLimits,
  runAcceptTransaction,
  UNCOUNTED,
} from '../../messages/accept/accept-transaction.js';
import { draftOf } from '../../messages/accept/draft.js';
import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import { newId } from '../../runtime/ids.js';
import { callerOf, insertAgent, insertTenant, messageCore } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';

export const TENANTS = [newId('ten'), newId('ten')] as const;

interface AcceptOptions {
  tenant?: string;
  text?: string;
  contextId?: string;
  push?: AcceptHook;
  agentType?: string;
  counting?: CountLimits;
}

/** Accept and complete transactions on a database of the test file's own, and a new agent for each of its tests. */
export async function acceptCalls() {
  const database = await freshDatabase();
  const db = database.db();
  const dispatches = createDispatches(messageCore(db));
  for (const tenant of TENANTS) await insertTenant(database, tenant);
  /** The agent of the running test, which both tenants have. */
  const agent = { instance: '' };
  beforeEach(async () => {
    agent.instance = newId('con');
    const row = { instance_id: agent.instance, mesh_id: 'mesh_1', connection_epoch: 1 };
    for (const tenant_id of TENANTS) await insertAgent(database, { tenant_id, ...row });
  });

  /** The accept transaction of one message. */
  async function accept(messageId: string, options: AcceptOptions = {}) {
    const { tenant = TENANTS[0], text = messageId, contextId, agentType: agent_type, counting = UNCOUNTED } = options;
    const message = { kind: 'message', role: 'user', messageId, parts: [{ kind: 'text', text }] } as const;
    const params = {
      message: { ...message, parts: [...message.parts], ...(contextId && { contextId }) },
      metadata: agent_type === undefined ? { instance_id: agent.instance } : { agent_type },
    };
    const draft = { ...draftOf(callerOf(tenant), params, { method: 'message/send' }), push: options.push };
    const dispatch_id = newId('dsp');
    const row = await runAcceptTransaction(db, draft, {
      counting,
      offer: { dispatch_id, mesh_id: 'mesh_1', any_mesh: false },
      idempotencyHours: 1,
    });
    const { message_id, session_id } = row;
    const produced = { artifacts: [], usage: null };
    return { row, ref: { tenant_id: tenant, message_id, dispatch_id, session_id, produced }, draft };
  }

  /** Transactions that wrote for `work`. */
  async function transactionsOf(work: () => Promise<unknown>): Promise<number> {
    const count = async () => {
      const [found] = await database.query<{ n: string }>(
        'SELECT count(DISTINCT transaction_id::text) AS n FROM event_groups',
      );
      return Number(found?.n);
    };
    const before = await count();
    await work();
    return (await count()) - before;
  }

  /** Names of messages, new ones in each test. */
  const names = (count: number) => Array.from({ length: count }, (_, place) => `${agent.instance}-${place}`);
  return { accept, agent, database, dispatches, names, transactionsOf };
}
