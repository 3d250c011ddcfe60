import type { MessageSendParams } from '../../contracts/a2a.js';
import type { Caller } from '../../contracts/auth.js';
import type { Db } from '../../db/pool.js';
import type { AcceptContext } from './draft.js';
import { checkMediaTypes, mediaTypesOf } from './media-types.js';
import { findTarget, targetNamed } from './target-agent.js';

/**
 * What a message says beyond its session about where it may go: its `target_agent` is looked up, its media types are compared with what
 * agents declare. Most messages say nothing of the kind, and cost nothing here.
 * @throws PlatformError CONTENT_TYPE_NOT_SUPPORTED
 */
export async function withDestination(
  db: Db,
  caller: Caller,
  params: MessageSendParams,
  context: AcceptContext,
): Promise<AcceptContext> {
  const name = targetNamed(params);
  const wanted = mediaTypesOf(params);
  if (name === null && wanted === null) return context;
  const target = name === null ? undefined : await findTarget(db, caller.tenant_id, name);
  if (wanted) {
    const to = { ...target, ...params.message.metadata, ...params.metadata };
    await checkMediaTypes(db, caller, params, wanted, to);
  }
  return { ...context, ...(target && { target }) };
}
