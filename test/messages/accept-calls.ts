import { beforeEach } from 'vitest';
import { newId } from '../../runtime/ids.js';
import { insertAgent } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { MESH, RecordFixture } from '../setup/record-fixture.js';

/** Accept and complete transactions of two tenants on a database of the test file's own, and a new agent for each of its tests. */
export async function acceptCalls() {
  const database = await freshDatabase();
  const [one, two] = [new RecordFixture(database), new RecordFixture(database)];
  await one.reset();
  await two.reset();
  /** The agent of the running test, which both tenants have. */
  const agent = { instance: '' };
  /** An agent of the first tenant, without a bound on its sessions. */
  const insert = (instance_id: string, columns: object = {}) =>
    one.agent(instance_id, { max_concurrent_sessions: 0, ...columns });
  beforeEach(async () => {
    agent.instance = newId('con');
    await insert(agent.instance);
    const row = { instance_id: agent.instance, mesh_id: MESH, connection_epoch: 1 };
    await insertAgent(database, { tenant_id: two.tenantId, ...row });
  });

  type Options = Parameters<RecordFixture['send']>[1] & { of?: RecordFixture; agentType?: string };
  /** The accept transaction of one message, whose text is its id where nothing else is said. */
  const accept = (messageId: string, { of = one, agentType: agent_type, ...options }: Options = {}) =>
    of.send(agent_type ? { agent_type } : { instance_id: agent.instance }, { text: messageId, messageId, ...options });

  /** Transactions that wrote for `work`. */
  async function transactionsOf(work: () => Promise<unknown>): Promise<number> {
    const count = 'SELECT count(DISTINCT transaction_id::text)::int FROM event_groups';
    const before = (await database.value<number>(count)) ?? 0;
    await work();
    return ((await database.value<number>(count)) ?? 0) - before;
  }

  /** Names of messages, new ones in each test. */
  const names = (count: number) => Array.from({ length: count }, (_, place) => `${agent.instance}-${place}`);
  return { accept, agent, database, dispatches: one.dispatches, insert, names, one, transactionsOf, two };
}
