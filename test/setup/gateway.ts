import type { MessageSendParams } from '../../contracts/a2a/a2a.js';
import type { Caller } from '../../contracts/api/auth.js';
import type { ResolveRequest } from '../../contracts/api/messages.js';
import { acceptDeps, acceptMessage } from '../../messages/accept/accept.js';
import type { AcceptContext } from '../../messages/accept/draft.js';
import { cancelMessage } from '../../messages/cancel.js';
import type { MessageCore } from '../../messages/core.js';
import type { Dispatcher } from '../../messages/dispatch/dispatcher.js';
import { resolveMessage } from '../../messages/input/resolve.js';
import { getMessage } from '../../messages/read/read.js';
import { type StreamOptions, streamTask } from '../../messages/stream/stream.js';

/** What the API calls for messages, bound to a core. */
export function createGateway(core: MessageCore, dispatcher?: Dispatcher) {
  const deps = { ...acceptDeps(core), ...(dispatcher && { dispatcher }) };
  return {
    accept: (caller: Caller, params: MessageSendParams, context: AcceptContext) =>
      acceptMessage(deps, caller, params, context),
    stream: (tenant_id: string, message_id: string, options: StreamOptions) =>
      streamTask(core, { tenant_id, message_id }, options),
    cancel: (caller: Caller, message_id: string, reason: string) =>
      cancelMessage(core, { tenant_id: caller.tenant_id, message_id }, reason, caller),
    resolve: (caller: Caller | null, messageId: string, body: ResolveRequest) =>
      resolveMessage(core, caller, messageId, body),
    get: (caller: Caller, messageId: string) => getMessage(core.db, caller, messageId),
  };
}
