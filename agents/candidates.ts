import type { Tx } from '../db/pool.js';

/** An agent that can take a dispatch now. */
export interface Candidate {
  instance_id: string;
  agent_type: string;
  deployment_mode: 'hosted' | 'connected';
  mesh_id: string | null;
  connection_epoch: number;
  max_concurrent_sessions: number;
  load: number;
  /** Sessions whose decision waits for room here: new work leaves it to them. */
  reserved: number;
  /** It reports that it takes no more. */
  busy: boolean;
  /** No connection to it opened for the message that is being routed. */
  unreachable: boolean;
}

/** Who may take a message. */
export interface Wanted {
  /** Only this instance. */
  instance_id?: string | null | undefined;
  agent_type?: string | null | undefined;
  skill_id?: string | null;
  /** The message being routed: instances that could not be reached for it come last. */
  message_id?: string;
}

/** Agents that could take what is wanted, the best first; full ones included (see `hasRoom`). */
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

function hasRoom({ busy, max_concurrent_sessions: most, load, reserved }: Candidate): boolean {
  return !busy && (most === 0 || load + reserved < most);
}

/** Keeps others from taking room on a bounded instance until the transaction ends. Taking it twice is harmless. */
export async function lockRoom(tx: Tx, tenantId: string, candidate: Candidate): Promise<void> {
  if (candidate.max_concurrent_sessions === 0) return;
  await tx.query('SELECT lock_room($1, $2)', [tenantId, candidate.instance_id]);
}

/**
 * Reserves room on an instance until the transaction ends: whoever binds a session to it holds this lock, so the count cannot be
 * passed by two at once. @returns whether there is room
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
 * The best agent with room, its room reserved; null when all that fit are full or none fits. The lock of one without room is given back
 * before the next is asked, so that two callers never wait for each other.
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
