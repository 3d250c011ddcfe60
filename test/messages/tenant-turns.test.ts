import { expect, test } from 'vitest';
import type { MessageInput } from '../../contracts/workflows.js';
import { Sweeper } from '../../messages/supervise/sweeper.js';
import { createWorkflowStarter } from '../../messages/supervise/workflow-starter.js';
import { newId } from '../../runtime/ids.js';
import { createLogger } from '../../runtime/logger.js';
import { insertTenant, messageCore } from '../setup/core.js';
import { freshDatabase } from '../setup/database.js';
import { until } from '../setup/until.js';

/** A cluster that acknowledges nothing until it is told to. */
class SlowTemporal {
  readonly asked: string[] = [];
  readonly #pending: (() => void)[] = [];

  readonly wakeMessage = (input: MessageInput): Promise<void> => {
    this.asked.push(input.tenant_id);
    return new Promise((resolve) => this.#pending.push(resolve));
  };
  readonly wakeSession = async (): Promise<void> => undefined;

  acknowledge(count: number): void {
    for (const resolve of this.#pending.splice(0, count)) resolve();
  }
}

const [FLOOD, OTHER] = [newId('ten'), newId('ten')] as const;
const messageOf = (tenant_id: string) => ({ tenant_id, message_id: newId('msg'), session_id: newId('ses') });

test('the wake-ups of a tenant with thousands leave room for those of others', async () => {
  const temporal = new SlowTemporal();
  const starter = createWorkflowStarter(temporal, createLogger({ level: 'silent' }));
  for (let count = 0; count < 2_000; count += 1) starter.message(messageOf(FLOOD));
  await until(() => temporal.asked.length >= 4);
  expect(temporal.asked).toEqual(Array(4).fill(FLOOD));
  starter.message(messageOf(OTHER));
  await until(() => temporal.asked.length >= 5);
  expect(temporal.asked.at(-1)).toBe(OTHER);
  // Those beyond the bound are left to the sweeper.
  for (let count = 0; count < 2_000; count += 1) {
    temporal.acknowledge(1);
    await new Promise((done) => setImmediate(done));
  }
  await starter.settled();
  expect(temporal.asked).toHaveLength(4 + 512 + 1);
});

test('the sweeper repeats the wake-ups of each tenant in turn, however many one has', async () => {
  const database = await freshDatabase();
  for (const [tenantId, count, age] of [
    [FLOOD, 1_000, 120],
    [OTHER, 3, 60],
  ] as const) {
    await insertTenant(database, tenantId);
    await database.query(
      `INSERT INTO running_messages (tenant_id, message_id, session_id, state, wake_requested_at)
       SELECT $1, 'msg_' || n, 'ses_1', 'input-required', now() - $3 * interval '1 s' FROM generate_series(1, $2) AS n`,
      [tenantId, count, age],
    );
  }
  const woken: string[] = [];
  const temporal = {
    wakeMessage: async ({ tenant_id }: MessageInput) => void woken.push(tenant_id),
    wakeSession: async () => undefined,
    fateOfSession: async () => 'running' as const,
  };
  const sweeper = new Sweeper(messageCore(database.db()), temporal);
  await sweeper.sweep();
  expect(woken).toHaveLength(200);
  expect(woken.filter((tenantId) => tenantId === OTHER)).toHaveLength(3);
  for (let rounds = 0; rounds < 5; rounds += 1) await sweeper.sweep();
  await until(() => woken.length === 1_003, { what: 'all wake-ups' });
});
