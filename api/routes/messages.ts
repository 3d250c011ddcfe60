import type { FastifyInstance } from 'fastify';
import { ResolveRequest } from '../../contracts/api/messages.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { cancelMessage } from '../../messages/cancel.js';
import { groupMessages } from '../../messages/read/lists/message-groups.js';
import { listMessages, pendingMessages } from '../../messages/read/lists/message-list.js';
import { readRates } from '../../messages/read/lists/message-rates.js';
import { getMessage } from '../../messages/read/read.js';
import { retryMessage } from '../../messages/retry.js';
import { PlatformError } from '../../runtime/errors.js';
import { createDecisions } from '../decisions.js';
import type { ApiDeps } from '../deps.js';
import { mount, pageFields } from '../mount.js';
import type { WrongTokens } from '../wrong-tokens.js';

/** A path parameter that may be an id: no schema checks paths. */
const MESSAGE_ID = /^[\x21-\x7e]{1,200}$/;

/** Whether a body has a callback token, which replaces an access token. */
function hasCallbackToken(body: unknown): boolean {
  const token = (body as Partial<ResolveRequest> | null | undefined)?.callback_token;
  return ResolveRequest.shape.callback_token.unwrap().safeParse(token).success;
}

/** Messages, scope `read`; a resolution may come with a callback token instead. */
export function messageRoutes(
  app: FastifyInstance,
  { wrongTokens, ...deps }: Pick<ApiDeps, 'messages' | 'plans' | 'secrets'> & { wrongTokens: WrongTokens },
): void {
  const { core } = deps.messages;
  const decisions = createDecisions(deps);

  mount(app, OPERATIONS.getMessages).answer(async (body, { caller }) => {
    const lists = { db: core.db, secrets: deps.secrets, inFlightMax: core.limits.tenantMaxInFlight };
    const { rows: messages, next_cursor, ...counted } = await listMessages(lists, caller, body);
    return { ...pageFields(body, counted), messages, ...(next_cursor && { next_cursor }) };
  });

  mount(app, OPERATIONS.getMessage).answer(async ({ message_id }, { caller }) => ({
    ok: true,
    message: await getMessage(core.db, caller, message_id, core.limits.tenantMaxInFlight),
  }));

  mount(app, OPERATIONS.cancelMessage).answer(async ({ message_id, reason }, { caller }) => {
    const ref = { tenant_id: caller.tenant_id, message_id };
    await cancelMessage(core, ref, reason ?? 'canceled by the caller', caller);
    return { ok: true, message_id };
  });

  mount(app, OPERATIONS.retryMessage).answer(async (body, { caller }) => ({
    ok: true,
    ...(await retryMessage(deps.messages, caller, body)),
  }));

  mount(app, OPERATIONS.pendingMessages).answer(async (body, { caller }) => {
    const { messages, total } = await pendingMessages(core.db, caller, body);
    return { ok: true, messages, total };
  });

  mount(app, OPERATIONS.getMessageGroups).answer(async (body, { caller }) => {
    const groups = await groupMessages(core.db, caller.tenant_id, body, core.limits.tenantMaxInFlight);
    return { ok: true, groups };
  });

  mount(app, OPERATIONS.getMessageRates).answer(async ({ hours }, { caller: { tenant_id } }) => ({
    ok: true,
    hours: await readRates(core.db, tenant_id, hours),
  }));

  app.register((scope, _options, done) => {
    scope.addHook('preHandler', async (request) => {
      if (request.caller || hasCallbackToken(request.body)) return;
      throw new PlatformError('unauthorized', 'An access token, or a callback_token in the body, is needed.');
    });
    mount(scope, OPERATIONS.resolveMessage).answer(async (body, { request }) => {
      const { id } = request.params as { id: string };
      if (!MESSAGE_ID.test(id)) throw new PlatformError('NOT_FOUND', 'There is no message of that message_id.');
      const resolve = () => decisions.resolve(request.caller, id, body, request.ip);
      return { ok: true, ...(await (request.caller ? resolve() : wrongTokens.guard(request.ip, resolve))) };
    });
    done();
  });
}
