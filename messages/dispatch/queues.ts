import type { AgentRef } from '../../agents/agent-row.js';
import { isOwnFault } from '../../db/errors.js';
import { newEventId } from '../../runtime/ids.js';
import type { MessageCore, QueueRef } from '../core.js';
import { readable } from '../read/readable.js';
import type { DispatchDetails } from '../read/rows.js';
import type { OpenDispatch, QueueStart } from './dispatches.js';
import { bytesOf, openDispatchFrom } from './open-dispatch.js';

/** Messages that wait for agents (db/functions/routing/queues.sql), and how nodes take them. */
export interface Queues {
  /**
   * Takes queued messages for an agent while it has room: opens a dispatch of each, as sent.
   * @param by the node that sends to the agent, and the epoch of its connection there; null for a hosted agent. `as_open`: they are opened as open, for
   * policies to decide about them
   * @param dispatchIds of the new dispatches, as many as the node takes
   * @param lent how many messages beyond the tenant's bound its agents may have
   */
  take(
    agent: AgentRef,
    by: { mesh_id: string; epoch: number | null; as_open: boolean },
    dispatchIds: string[],
    lent?: number,
  ): Promise<OpenDispatch[]>;
  /** Some of the agents that serve this queue and have room, and the node that each is connected to; null for a hosted one. */
  agentsToFill(queue: QueueRef): Promise<{ instance_id: string; mesh_id: string | null }[]>;
  /** Tenants whose messages wait for agents. */
  tenantsWithQueues(): Promise<string[]>;
  /** Queues of a tenant in which messages wait for agents, at most so many: those after the queue `after`; '' for the first ones. */
  queuesNotEmpty(tenantId: string, after: string, atMost: number): Promise<QueueRef[]>;
  /** How many messages agents of a tenant have, counted to 256 beyond its bound. */
  inFlight(tenantId: string): Promise<number>;
}

/** A dispatch that was taken, as JSON writes its row: times as texts, bytes in hexadecimal. */
export type TakenRow = Omit<DispatchDetails, 'sent_at' | 'deadline_at' | 'read_at' | 'dispatch_auth'> & {
  sent_at: string;
  deadline_at: string;
  read_at: string;
  dispatch_auth: string | null;
  /** Its message has a workflow. */
  watched: boolean;
  /** As in `QueueStart`; absent: the next take begins at the oldest message. */
  queue_from?: string;
};

function detailsOf(row: TakenRow): DispatchDetails {
  return {
    ...row,
    sent_at: new Date(row.sent_at),
    deadline_at: new Date(row.deadline_at),
    read_at: new Date(row.read_at),
    dispatch_auth: bytesOf(row.dispatch_auth),
  };
}

/**
 * Makes the dispatch of a taken row, and announces that its message is under way.
 * @param start where its take began; undefined: at the oldest message
 */
export function takenDispatch({ bus, workflowStarter }: Announced, row: TakenRow, start?: QueueStart): OpenDispatch {
  const open = openDispatchFrom(readable(detailsOf(row)));
  const { queue_from } = row;
  if (queue_from !== undefined)
    open.queue_start = { queue_from, lookedAtAllMs: start?.lookedAtAllMs ?? performance.now() };
  const { tenant_id, message_id, session_id } = open;
  bus.publish(tenant_id, message_id, { kind: 'changed', under_way: true });
  if (row.watched) workflowStarter.message({ tenant_id, message_id, session_id });
  return open;
}

type Announced = Pick<MessageCore, 'bus' | 'workflowStarter'>;

/** How far beyond a tenant's bound its messages are counted. */
const COUNTED_BEYOND = 256;
/** Queues of a tenant that one round looks at. */
const ROUND_QUEUES_MAX = 100;

/** Goes through a tenant's queues that are not empty, `ROUND_QUEUES_MAX` in each round. The next round goes on after them. */
export class QueueRounds {
  readonly #queues: Pick<Queues, 'queuesNotEmpty'>;
  /** By tenant, the last queue of the round before, if there are more. */
  readonly #seen = new Map<string, string>();

  constructor(queues: Pick<Queues, 'queuesNotEmpty'>) {
    this.#queues = queues;
  }

  async next(tenantId: string): Promise<QueueRef[]> {
    const queues = await this.#queues.queuesNotEmpty(tenantId, this.#seen.get(tenantId) ?? '', ROUND_QUEUES_MAX);
    const last = queues.length === ROUND_QUEUES_MAX ? queues.at(-1) : undefined;
    if (last) this.#seen.set(tenantId, last.queue);
    else this.#seen.delete(tenantId);
    return queues;
  }
}

/** The queues on the record. */
export function createQueues(core: Pick<MessageCore, 'db' | 'limits'> & Announced): Queues {
  const { db, limits } = core;
  return {
    take: async ({ tenant_id, instance_id }, { mesh_id, epoch, as_open }, dispatchIds, lent = 0) => {
      const call = {
        ...{ tenant_id, instance_id, mesh_id, epoch, as_open },
        dispatch_ids: dispatchIds,
        event_ids: dispatchIds.map(newEventId),
        in_flight_limit: limits.tenantMaxInFlight + lent,
      };
      const query = 'SELECT unnest(take_messages($1)) AS taken';
      const take = (isRetry: boolean) =>
        db.call<{ taken: TakenRow }>(tenant_id, 'take_messages', query, [
          JSON.stringify({ ...call, is_retry: isRetry }),
        ]);
      const rows = await take(false).catch((error: unknown) => {
        if (!isOwnFault(error)) throw error;
        return take(true); // sets aside the message that causes the error
      });
      return rows.map(({ taken }) =>
        as_open ? openDispatchFrom(readable(detailsOf(taken))) : takenDispatch(core, taken),
      );
    },
    agentsToFill: ({ tenant_id, queue }) =>
      db.tenant(tenant_id, (tx) =>
        tx.query<{ instance_id: string; mesh_id: string | null }>(
          'SELECT instance_id, mesh_id FROM agents_to_fill($1, $2)',
          [tenant_id, queue],
        ),
      ),
    tenantsWithQueues: async () => {
      const rows = await db.system((tx) =>
        tx.query<{ tenant_id: string }>('SELECT tenants_with_queues() AS tenant_id'),
      );
      return rows.map(({ tenant_id }) => tenant_id);
    },
    queuesNotEmpty: (tenantId, after, atMost) => {
      const query = 'SELECT $1 AS tenant_id, queue FROM queues_not_empty($1, $2, $3) AS queue';
      return db.tenant(tenantId, (tx) => tx.query<QueueRef>(query, [tenantId, after, atMost]));
    },
    inFlight: async (tenantId) => {
      const values = [tenantId, limits.tenantMaxInFlight + COUNTED_BEYOND];
      const [row] = await db.tenant(tenantId, (tx) =>
        tx.query<{ in_flight: number }>('SELECT in_flight($1, $2)', values),
      );
      return row?.in_flight ?? 0;
    },
  };
}
