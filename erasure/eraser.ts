import { DEFAULT_CLOCKS } from '../runtime/clocks.js';
import { Loop } from '../runtime/loop.js';
import { eraseMessages } from './erase-messages.js';
import type { EraserDeps, Portion } from './eraser-deps.js';
import {
  continueAfter,
  type Erasure,
  findErasure,
  finish,
  orderForDeletedTenants,
  Selection,
  takeDue,
} from './erasures.js';
import { countExternal, removeNoted } from './external-removal.js';
import { eraseSessions } from './sessions/erase-sessions.js';
import { eraseTenant } from './tenant/erase-tenant.js';

const LEASE_SECONDS = 60;

/** Erases the next portion of an erasure. */
async function erasePortion(deps: EraserDeps, erasure: Erasure): Promise<Portion> {
  if (erasure.kind === 'tenant') return eraseTenant(deps, erasure);
  const selection = Selection.parse(erasure.selection);
  const erase = erasure.kind === 'messages' ? eraseMessages : eraseSessions;
  const portion = await erase(deps, erasure, selection);
  if (portion !== 'finished') return portion;
  await deps.db.system(async (tx) => {
    await countExternal(tx, erasure.erasure_id);
    await finish(tx, erasure.erasure_id);
  });
  return 'finished';
}

/**
 * Erases the next portion of the erasure that is due: erasures take turns, and so do processes. A portion is a short transaction, which
 * locks rows of one tenant only.
 * @returns milliseconds until the next turn: as long as this one took, so that erasing takes half of a connection at most
 */
export async function eraseNext(deps: EraserDeps): Promise<number> {
  const startedAt = performance.now();
  await orderForDeletedTenants(deps.db);
  const erasure = await takeDue(deps.db, deps.leaseSeconds ?? LEASE_SECONDS);
  const { everyMs = DEFAULT_CLOCKS.eraseMs } = deps;
  if (!erasure) return everyMs;
  const { erasure_id, tenant_id, kind } = erasure;
  await removeNoted(deps, erasure);
  const portion = await erasePortion(deps, erasure);
  if (portion === 'finished') {
    const report = await findErasure(deps.db, erasure_id);
    deps.log.info({ erasure_id, tenant_id, kind, removed: report?.removed }, 'an erasure is finished');
  } else {
    // It waits for messages that are being canceled, plans that are ending, and deliveries of a deleted tenant.
    await continueAfter(deps.db, erasure_id, portion === 'waits' ? everyMs : 0);
  }
  return performance.now() - startedAt;
}

/** The loop of the worker role that carries out erasures. */
export function createEraser(deps: EraserDeps): Loop {
  const { everyMs: intervalMs = DEFAULT_CLOCKS.eraseMs } = deps;
  return new Loop({ name: 'erasures', intervalMs, work: () => eraseNext(deps), log: deps.log });
}
