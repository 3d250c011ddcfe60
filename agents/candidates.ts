import type { Tx } from '../db/pool.js';

/** An agent that may receive a dispatch now. */
export interface Candidate {
  instance_id: string;
  agent_type: string;
  deployment_mode: 'hosted' | 'connected';
  mesh_id: string | null;
  connection_epoch: number;
  max_concurrent_sessions: number;
  load: number;
  /** Capacity reserved for sessions whose human decision is made and which wait to continue on this agent. */
  reserved: number;
  /** The agent reports that it accepts no more work. */
  busy: boolean;
  /** An earlier attempt of the message being routed could not connect to this agent. */
  unreachable: boolean;
}

/** Which agents may receive a message. */
export interface Wanted {
  /** Only this instance. */
  instance_id?: string | null | undefined;
  agent_type?: string | null | undefined;
  skill_id?: string | null;
  /** The message being routed: agents that it could not reach before are ordered last. */
  message_id?: string;
}

/** The agents that match, the best first; agents at capacity are included (see `hasRoom`). */
export function candidates(tx: Tx, tenantId: string, wanted: Wanted): Promise<Candidate[]> {
  return tx.query<Candidate & Record<string, unknown>>(
    'SELECT * FROM routable_agents($1, $2, $3, $4, $5)',
    [
      tenantId,
      wanted.instance_id ?? null,
      wanted.agent_type ?? null,
      wanted.skill_id ?? null,
      wanted.message_id ?? null,
    ],
    'routable_agents',
  );
}

function hasRoom({ busy, max_concurrent_sessions: limit, load, reserved }: Candidate): boolean {
  return !busy && (limit === 0 || load + reserved < limit);
}

/** Locks the capacity of an agent that has a limit until the transaction ends. Locking it again in the same transaction has no effect. */
export async function lockRoom(tx: Tx, tenantId: string, candidate: Candidate): Promise<void> {
  if (candidate.max_concurrent_sessions === 0) return;
  await tx.query('SELECT lock_room($1, $2)', [tenantId, candidate.instance_id]);
}

/**
 * Locks the capacity of an agent and checks whether it has room. Every transaction that binds a session holds this lock, so two
 * transactions cannot exceed the limit together.
 * @returns whether there is room
 */
export async function claimRoom(tx: Tx, tenantId: string, candidate: Candidate): Promise<boolean> {
  if (candidate.max_concurrent_sessions === 0 || candidate.busy) return !candidate.busy;
  await lockRoom(tx, tenantId, candidate);
  const [row] = await tx.query<{ load: number }>('SELECT agent_load($1, $2) AS load', [
    tenantId,
    candidate.instance_id,
  ]);
  return hasRoom({ ...candidate, load: row?.load ?? 0 });
}

/**
 * Locks the capacity of the best agent that has room; null when no candidate has any. The lock of an agent without room is released before
 * the next agent is locked, so that two transactions cannot deadlock.
 */
export async function claimBest(tx: Tx, tenantId: string, found: Candidate[]): Promise<Candidate | null> {
  for (const candidate of found.filter(hasRoom)) {
    if (candidate.max_concurrent_sessions === 0) return candidate;
    await tx.query('SAVEPOINT claim');
    if (await claimRoom(tx, tenantId, candidate)) return candidate;
    await tx.query('ROLLBACK TO SAVEPOINT claim');
  }
  return null;
}
