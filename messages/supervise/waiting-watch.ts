import { type MessageInput, messageWorkflowId } from '../../contracts/workflows.js';
import { Loop } from '../../runtime/loop.js';
import type { MessageCore } from '../core.js';
import { failByOperator } from './next-step.js';
import type { TemporalLink } from './temporal-link.js';

/** Between rounds. */
const EVERY_MS = 10_000;
/** Between questions to Temporal, in rounds. */
const ASKED_EVERY = 6;
/** How far the first question of a process looks back. */
const FIRST_MS = 86_400_000;
/** How far the next questions look back before the last one, because Temporal lists workflows some time after they ended. */
const OVERLAP_MS = 300_000;
/** After this time, in milliseconds, a reminder or the end of a request is overdue: its workflow's own timer should have seen to it. */
const OVERDUE_MS = 10_000;
const BATCH = 200;

/** Messages whose workflow has missed a time of their request, found by the index input_requests_due. */
const OVERDUE = `
  SELECT w.tenant_id, w.message_id, w.session_id FROM input_requests q JOIN running_messages w USING (tenant_id, message_id)
   WHERE q.state = 'pending' AND least(q.expires_at, q.remind_at) < now() - interval '${OVERDUE_MS} ms'
   ORDER BY least(q.expires_at, q.remind_at) LIMIT ${BATCH}`;

const RUNNING = `
  SELECT tenant_id, message_id, session_id FROM unnest($1::text[], $2::text[]) AS ended (tenant_id, message_id)
    JOIN running_messages r USING (tenant_id, message_id) WHERE r.supervised_at IS NOT NULL`;

type Workflows = Pick<TemporalLink, 'endedMessages' | 'fateOfMessage' | 'wakeMessage'>;

/**
 * Brings the workflow of a message that is not over in line with the record: one that is missing is created again, and a message whose
 * workflow an operator ended fails. @throws while Temporal or the database is away
 */
async function restoreMessage(
  core: MessageCore,
  temporal: Pick<Workflows, 'fateOfMessage' | 'wakeMessage'>,
  row: MessageInput,
): Promise<void> {
  const { tenant_id, message_id, session_id } = row;
  const ids = { tenant_id, message_id, session_id, workflow_id: messageWorkflowId(row) };
  const fate = await temporal.fateOfMessage(row);
  if (fate === 'running') return;
  if (fate !== 'ended_by_operator') {
    core.log.info({ ...ids, fate }, 'recreating a lost workflow');
    return temporal.wakeMessage(row);
  }
  core.log.warn(ids, 'the workflow of a message was ended in Temporal; the message fails');
  const error = { code: 'INTERNAL', message: 'An operator ended the workflow of this message.' };
  await failByOperator(core, row, error);
}

/**
 * Watches over messages that have workflows. Its cost does not grow with their number: one statement finds messages whose time has passed unnoticed (while
 * Temporal was away, for example), and once a minute Temporal is asked which workflows operators have ended.
 */
export class WaitingWatch extends Loop {
  readonly #core: MessageCore;
  readonly #temporal: Workflows;
  #rounds = 0;
  #askedAtMs: number | null = null;

  constructor(core: MessageCore, temporal: Workflows) {
    super({ name: 'waiting watch', intervalMs: EVERY_MS, immediate: true, log: core.log, work: () => this.look() });
    this.#core = core;
    this.#temporal = temporal;
  }

  /** One round. Rejects while the database or Temporal is away; the next one does what this one did not. */
  async look(): Promise<void> {
    const overdue = await this.#core.db.system((tx) => tx.query<MessageInput>(OVERDUE));
    for (const ref of overdue) this.#core.advance(ref);
    this.#rounds += 1;
    if (this.#rounds % ASKED_EVERY !== 1) return;
    await this.restoreEnded().catch((error: unknown) => {
      this.#rounds -= 1; // asked again in the next round
      throw error;
    });
  }

  /**
   * Fails the messages whose workflows operators have ended since the last time. If one fails, the others are still handled.
   * @throws AggregateError with the errors; the next call then looks back as far as this one did
   */
  async restoreEnded(): Promise<void> {
    const nowMs = Date.now();
    const sinceMs = this.#askedAtMs === null ? nowMs - FIRST_MS : this.#askedAtMs - OVERLAP_MS;
    const failures: unknown[] = [];
    for await (const ended of this.#temporal.endedMessages(new Date(sinceMs))) {
      const values = [ended.map(({ tenant_id }) => tenant_id), ended.map(({ message_id }) => message_id)];
      const rows = await this.#core.db.system((tx) => tx.query<MessageInput>(RUNNING, values));
      for (const row of rows)
        await restoreMessage(this.#core, this.#temporal, row).catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw new AggregateError(failures, `${failures.length} messages could not be restored`);
    this.#askedAtMs = nowMs;
  }
}
