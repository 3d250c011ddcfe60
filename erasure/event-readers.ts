import { madeAtMs, uuidOf } from '../runtime/ids.js';
import type { EraserDeps } from './eraser-deps.js';
import type { Erasure } from './erasures.js';

const READ_WITHIN_MS = 600_000;

/**
 * Whether everyone who reads events has read these. Usage is waited for however long it takes, because it is a bill; alert rules for ten
 * minutes, because what is to be erased must go in the end.
 */
export async function areEventsRead(deps: EraserDeps, erasure: Erasure, eventIds: readonly string[]): Promise<boolean> {
  if (!(await deps.catchUpUsage())) return false;
  const newest = [...eventIds].sort().at(-1);
  if (newest === undefined) return true;
  const uuid = uuidOf(newest);
  const waitedMs = Date.now() - Math.max(madeAtMs(uuid) ?? 0, erasure.requested_at.getTime());
  if (waitedMs > (deps.readWithinMs ?? READ_WITHIN_MS)) return true;
  const bound = `${uuid.slice(0, -2)}ff`; // past every event of its group
  const [row] = await deps.db.system((tx) =>
    tx.query<{ read: boolean }>('SELECT events_consumed($1) AS read', [bound]),
  );
  return row?.read === true;
}
