import { NO_AGENT } from '../contracts/primitives.js';
import { cancelMessage, sessionDeps } from '../messages/cancel.js';
import type { MessageCore } from '../messages/core.js';
import { PlatformError } from '../runtime/errors.js';
import { createSessions } from '../sessions/sessions.js';
import type { EraserDeps } from './eraser-deps.js';

/** In the events of what is canceled or ended. */
const REASON = 'erased';
/** Nothing is left to end. */
const OVER: ReadonlySet<string> = new Set(['NOT_FOUND', 'ALREADY_TERMINAL', 'SESSION_CLOSED']);

async function unlessOver(work: Promise<void>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof PlatformError && OVER.has(error.code))) throw error;
  });
}

/** How messages and sessions end before they are erased: as on a caller's word. */
export function endsOfWork(core: MessageCore): Pick<EraserDeps, 'cancel' | 'endSession'> {
  const sessions = createSessions(sessionDeps(core));
  return {
    cancel: (ref) => unlessOver(cancelMessage(core, ref, REASON)),
    endSession: ({ tenant_id, session_id }) =>
      unlessOver(sessions.close({ tenant_id, agent_type: NO_AGENT }, session_id, REASON)),
  };
}
