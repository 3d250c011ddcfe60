import type { MessageCore, MessageRef } from '../../../messages/core.js';
import { takeStep } from '../../../messages/supervise/next-step.js';
import { Sweeper } from '../../../messages/supervise/sweeper.js';
import type { FreshDatabase } from '../../setup/database.js';

/**
 * Lets sweepers alone take messages further, and their workflows hear of decisions, until they find none.
 * @returns the messages that are stuck: they have not ended, and wait neither for a human nor for an agent or a dispatch
 */
export async function movedBySweepers(database: FreshDatabase, core: MessageCore): Promise<object[]> {
  for (let turns = 0; turns < 20; turns += 1) {
    for (const table of ['running_messages', 'input_requests'])
      await database.query(
        `UPDATE ${table} SET wake_requested_at = now() - interval '1 minute' WHERE wake_requested_at IS NOT NULL`,
      );
    const due = new Map<string, MessageRef>();
    const wakeMessage = async (ref: MessageRef) => void due.set(ref.message_id, ref);
    const temporal = { wakeMessage, wakeSession: async () => undefined, fateOfSession: async () => 'running' as const };
    const workflowStarter = {
      ...core.workflowStarter,
      message: (ref: MessageRef) => void due.set(ref.message_id, ref),
    };
    await new Sweeper({ ...core, workflowStarter }, temporal).sweep();
    for (const ref of due.values()) await takeStep(core, ref, 'workflow');
    const marked = 'SELECT 1 FROM running_messages WHERE wake_requested_at IS NOT NULL';
    if (due.size === 0 && (await database.query(marked)).length === 0) break;
  }
  return database.query(
    `SELECT r.message_id, r.state FROM running_messages r LEFT JOIN dispatches d ON d.dispatch_id = r.current_dispatch_id
      WHERE CASE r.state WHEN 'input-required'
          THEN NOT EXISTS (SELECT 1 FROM input_requests q WHERE q.message_id = r.message_id AND q.state = 'pending')
        ELSE r.queue IS NULL AND coalesce(d.state, '') NOT IN ('open', 'sent') END`,
  );
}
