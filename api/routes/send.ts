import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { RpcId } from '../../contracts/a2a.js';
import { OPERATIONS } from '../../contracts/operations.js';
import type { AcceptContext } from '../../messages/draft.js';
import { RpcError } from '../../messages/rpc-error.js';
import type { LiveMessage } from '../../messages/short-way.js';
import type { ApiDeps } from '../deps.js';
import { callerOf } from '../plugins/authentication.js';
import { logFailure, toPlatformError } from '../plugins/error-contract.js';
import { EventStream, lifetimeOf } from '../send/event-stream.js';
import { checkVersion, type RpcCall, readCall, rpcFailure, rpcIdOf, rpcResult } from '../send/rpc.js';

type Deps = Pick<ApiDeps, 'gateway' | 'config' | 'draining'>;

const BAGGAGE_MAX = 8_192;

function traceOf(request: FastifyRequest): Omit<AcceptContext, 'method'> {
  const { traceparent, baggage } = request.headers;
  return {
    ...(typeof traceparent === 'string' && { traceparent }),
    ...(typeof baggage === 'string' && baggage.length <= BAGGAGE_MAX && { baggage }),
  };
}

/** Puts the message on the record, or takes it as the answer to what an agent asked. */
async function take(deps: Deps, request: FastifyRequest, call: RpcCall): Promise<Taken> {
  const caller = callerOf(request);
  if (call.params.message.taskId !== undefined)
    return { ...(await deps.gateway.followUp(caller, call.params)), duplicate: true, live: null };
  return deps.gateway.accept(caller, call.params, { method: call.method, ...traceOf(request) });
}

interface Taken {
  message_id: string;
  /** It was on the record before. */
  duplicate: boolean;
  live: LiveMessage | null;
}

/**
 * What goes to the caller as a JSON-RPC error. The rest keeps its HTTP status: a bound that was reached, a part that is away.
 * @throws PlatformError
 */
function asRpcError(request: FastifyRequest, error: unknown): RpcError {
  if (error instanceof RpcError) return error;
  const shown = toPlatformError(error);
  if (shown.code !== 'INTERNAL_ERROR') throw shown;
  logFailure(request, shown);
  return new RpcError('INTERNAL', `An unexpected error occurred. Request ${request.id}.`);
}

async function pour(
  deps: Deps,
  request: FastifyRequest,
  reply: FastifyReply,
  id: RpcId,
  { message_id, live }: Taken,
): Promise<void> {
  const { tenant_id } = callerOf(request);
  const signal = lifetimeOf(reply.raw, deps.draining);
  const lastEventId = request.headers['last-event-id'];
  const after = typeof lastEventId === 'string' ? { after: lastEventId } : {};
  const stream = new EventStream(reply.raw, request.id);
  try {
    for await (const { cursor, event } of deps.gateway.stream(tenant_id, message_id, { signal, ...after }, live)) {
      await stream.send(rpcResult(id, event), cursor, signal);
    }
  } catch (error) {
    if (signal.aborted) return;
    const shown = error instanceof RpcError ? error : new RpcError('INTERNAL', 'The stream broke. The task goes on.');
    if (shown !== error) logFailure(request, toPlatformError(error));
    await stream.send(rpcFailure(id, shown), null, signal);
  } finally {
    stream.end();
  }
}

/** `/send`: A2A 0.3 over JSON-RPC (a2a.md). JSON-RPC errors ride on HTTP 200. */
export function sendRoutes(app: FastifyInstance, deps: Deps): void {
  const { path, access } = OPERATIONS.send;

  const answer = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    checkVersion(request.headers['a2a-version']);
    const call = readCall(request.body, Number(request.headers['content-length']));
    const taken = await take(deps, request, call);
    if (call.method === 'message/stream') {
      reply.hijack();
      await pour(deps, request, reply, call.id, taken);
      return reply;
    }
    const { blocking = true, historyLength } = call.params.configuration ?? {};
    const wait = {
      waitMs: deps.config.SEND_WAIT_MS,
      signal: () => lifetimeOf(reply.raw, deps.draining),
      blocking,
      ...(historyLength !== undefined && { historyLength }),
    };
    const accepted = taken.duplicate ? null : taken;
    const task = await deps.gateway.waitForTask(callerOf(request).tenant_id, taken.message_id, wait, accepted);
    return rpcResult(call.id, task);
  };

  app.post(path, { config: { access, rpc: true } }, async (request, reply) => {
    try {
      return await answer(request, reply.header('cache-control', 'no-store'));
    } catch (error) {
      return rpcFailure(rpcIdOf(request.body), asRpcError(request, error));
    }
  });
}
