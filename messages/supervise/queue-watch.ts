import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import type { MessageInput } from '../../contracts/workflows.js';
import { Loop } from '../../runtime/loop.js';
import { allOrFirstFailure } from '../../runtime/promises/all-or-first-failure.js';
import type { MessageCore } from '../core.js';
import { createQueues, QueueRounds, type Queues } from '../dispatch/queues.js';

const EVERY_MS = 1_000;
/** Messages of a queue that fail in one round because no agent of it has been online. */
const FAILED_MAX = 200;
/** How many queued messages of a tenant get workflows: of each queue the same share, those that are next in it. */
const WATCHED_MAX = 200;
const TENANTS_AT_ONCE = 4;
/** Workflows that are started of a tenant in one round. */
const STARTS_MAX = 10;

const WITHOUT_AGENT_ONLINE = `
  SELECT $1 AS tenant_id, w.message_id, w.session_id
    FROM unnest($2::text[]) AS q (queue) CROSS JOIN LATERAL messages_without_agent_online($1, q.queue, $3, $4) w`;
const OLDEST = `
  SELECT $1 AS tenant_id, o.message_id, o.session_id, o.supervised_at IS NOT NULL AS is_watched
    FROM unnest($2::text[]) AS q (queue) CROSS JOIN LATERAL (SELECT * FROM running_messages r
      WHERE r.tenant_id = $1 AND r.queue = q.queue ORDER BY (r.resolution IS NULL), r.created_at LIMIT $4) o
   WHERE o.unrouted_since < now() - $3 * interval '1 ms'`;

type Found = MessageInput & { is_watched: boolean };

/**
 * Looks once a second at the queues that are not empty: where no agent has been online for too long their messages fail, and the first of
 * each that have waited for a while get workflows, so that operators see them.
 */
export class QueueWatch extends Loop {
  readonly #core: MessageCore;
  readonly #queues: Queues;
  /** Messages whose workflows were started just now, and have not looked yet. */
  readonly #started = new LRUCache<string, true>({ max: 10_000, ttl: 60_000 });
  readonly #rounds: QueueRounds;

  constructor(core: MessageCore) {
    super({ name: 'queue watch', intervalMs: EVERY_MS, log: core.log, work: () => this.look() });
    this.#core = core;
    this.#queues = createQueues(core);
    this.#rounds = new QueueRounds(this.#queues);
  }

  /** One round. Rejects while the database is away. */
  async look(): Promise<void> {
    const tenantAtOnce = pLimit(TENANTS_AT_ONCE);
    const tenants = await this.#queues.tenantsWithQueues();
    await allOrFirstFailure(tenants.map((id) => tenantAtOnce(() => this.#lookAt(id))));
  }

  async #lookAt(tenantId: string): Promise<void> {
    const { db, limits, advance, workflowStarter } = this.#core;
    const queues = (await this.#rounds.next(tenantId)).map(({ queue }) => queue);
    if (queues.length === 0) return;
    const find = <Row extends MessageInput>(text: string, ...values: number[]) =>
      db.tenant(tenantId, (tx) => tx.query<Row>(text, [tenantId, queues, ...values]));
    for (const ref of await find(WITHOUT_AGENT_ONLINE, limits.queueWaitMs, FAILED_MAX)) advance(ref);
    const share = Math.max(1, Math.floor(WATCHED_MAX / queues.length));
    const oldest = await find<Found>(OLDEST, limits.watchAfterMs, share);
    const unseen = oldest.filter(({ is_watched, message_id }) => !is_watched && !this.#started.has(message_id));
    for (const { is_watched: _, ...ref } of unseen.slice(0, STARTS_MAX)) {
      this.#started.set(ref.message_id, true);
      workflowStarter.message(ref);
    }
  }
}
