import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import type { MessageInput } from '../../contracts/workflows.js';
import { Loop } from '../../runtime/loop.js';
import { allOrFirstFailure } from '../../runtime/promises/all-or-first-failure.js';
import type { MessageCore, WaitingQueue } from '../core.js';
import { createQueues, QueueRounds, type Queues } from '../dispatch/queues.js';

const EVERY_MS = 1_000;
/** Messages of a queue that fail in one round because no agent of it has been online. */
const FAILED_MAX = 200;
/** How many queued messages of a tenant get workflows: those that have waited longest. */
const WATCHED_MAX = 200;
const TENANTS_AT_ONCE = 4;
/** Workflows that are started of a tenant in one round. */
const STARTS_MAX = 10;

const WITHOUT_AGENT_ONLINE = 'SELECT $1 AS tenant_id, message_id, session_id FROM messages_without_agent_online($1, $2, $3, $4)';
const OLDEST = `
  SELECT tenant_id, message_id, session_id, supervised_at IS NOT NULL AS is_watched FROM (
    SELECT * FROM running_messages WHERE tenant_id = $1 AND queue = $2 ORDER BY (resolution IS NULL), created_at LIMIT $4) AS oldest
   WHERE unrouted_since < now() - $3 * interval '1 ms'`;

type Found = MessageInput & { is_watched: boolean };

/**
 * Looks once a second at the queues that are not empty: where no agent has been online for too long their messages fail, and those that have
 * waited longest get workflows, so that operators see them.
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
    const tenants = await this.#queues.waitingTenants();
    await allOrFirstFailure(tenants.map((id) => tenantAtOnce(() => this.#lookAt(id))));
  }

  async #lookAt(tenantId: string): Promise<void> {
    let watched = 0;
    let started = 0;
    for (const queue of await this.#rounds.next(tenantId)) {
      for (const ref of await this.#leftAlone(queue)) this.#core.advance(ref);
      for (const { is_watched, ...ref } of watched < WATCHED_MAX
        ? await this.#oldest(queue, WATCHED_MAX - watched)
        : []) {
        watched += 1;
        if (is_watched || started === STARTS_MAX || this.#started.has(ref.message_id)) continue;
        started += 1;
        this.#started.set(ref.message_id, true);
        this.#core.workflowStarter.message(ref);
      }
    }
  }

  #leftAlone({ tenant_id, queue }: WaitingQueue): Promise<MessageInput[]> {
    const values = [tenant_id, queue, this.#core.limits.queueWaitMs, FAILED_MAX];
    return this.#core.db.tenant(tenant_id, (tx) => tx.query<MessageInput>(WITHOUT_AGENT_ONLINE, values));
  }

  #oldest({ tenant_id, queue }: WaitingQueue, atMost: number): Promise<Found[]> {
    const values = [tenant_id, queue, this.#core.limits.watchAfterMs, atMost];
    return this.#core.db.tenant(tenant_id, (tx) => tx.query<Found>(OLDEST, values));
  }
}
