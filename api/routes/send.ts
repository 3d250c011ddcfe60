import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { createAgentTypes } from '../../agents/agent-type-card.js';
import type { A2aVersion, RpcId } from '../../contracts/a2a/a2a.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { limitedMethodRefusal } from '../../contracts/permissions.js';
import type { AcceptContext } from '../../messages/accept/draft.js';
import { PlatformError } from '../../runtime/errors.js';
import type { ApiDeps } from '../deps.js';
import { routeConfig } from '../mount.js';
import { type OpenCalls, TokenWatch } from '../open-calls.js';
import { callerOf } from '../plugins/authentication.js';
import { logFailure, toPlatformError } from '../plugins/error-contract.js';
import { EventStream, responseSignal } from '../send/event-stream.js';
import { type MethodDeps, methodsOf } from '../send/methods.js';
import {
  type CallContext,
  methodLookup,
  namedVersion,
  readCall,
  rpcFailure,
  rpcIdOf,
  rpcResult,
  supportedVersion,
  type WireItem,
} from '../send/rpc.js';
import { RpcError, rpcErrorOf } from '../send/rpc-error.js';

type Deps = MethodDeps & Pick<ApiDeps, 'db' | 'draining' | 'authenticator' | 'clocks'> & { openCalls: OpenCalls };

const BAGGAGE_MAX = 8_192;
/** W3C Trace Context asks for this much at least. */
const TRACESTATE_MAX = 512;

function traceOf(request: FastifyRequest): Omit<AcceptContext, 'method'> {
  const { traceparent, tracestate, baggage } = request.headers;
  return {
    ...(typeof traceparent === 'string' && { traceparent }),
    ...(typeof tracestate === 'string' && tracestate.length <= TRACESTATE_MAX && { tracestate }),
    ...(typeof baggage === 'string' && baggage.length <= BAGGAGE_MAX && { baggage }),
  };
}

/**
 * The JSON-RPC error for anything thrown.
 * @throws PlatformError for what keeps its HTTP status: a limit that is reached, a server that is away
 */
function asRpcError(request: FastifyRequest, error: unknown): RpcError {
  const answer = rpcErrorOf(error);
  if (answer) return answer;
  const shown = toPlatformError(error);
  if (shown.code !== 'INTERNAL_ERROR') throw shown;
  logFailure(request, shown);
  return new RpcError('INTERNAL', `An unexpected error occurred. Request ${request.id}.`);
}

const TOKEN_EXPIRED = new RpcError(
  'INTERNAL',
  'The access token has ended, and the stream or the wait with it. The task goes on: follow it with a new token.',
  'unauthorized',
);

/** Sends events as they come, each a whole JSON-RPC response; an error as the last one where the token ends first. */
async function sendEvents(
  request: FastifyRequest,
  reply: FastifyReply,
  id: RpcId,
  events: AsyncIterable<WireItem>,
  { signal: lifetime, version }: CallContext,
  tokenEnded: AbortSignal,
): Promise<void> {
  const signal = lifetime();
  const stream = new EventStream(reply.raw, request.id);
  try {
    for await (const { cursor, event } of events) await stream.send(rpcResult(id, event), cursor, signal);
  } catch (error) {
    if (signal.aborted) return;
    const known = rpcErrorOf(error);
    if (!known) logFailure(request, toPlatformError(error));
    const shown = known ?? new RpcError('INTERNAL', 'The stream broke. The task goes on.');
    await stream.send(rpcFailure(id, shown, version), null, signal);
  } finally {
    stream.end(tokenEnded.aborted ? rpcFailure(id, TOKEN_EXPIRED, version) : undefined);
  }
}

/** Clients of 0.3 read every answer to a streaming method as a stream, errors included; clients of 1.0 do not. */
function wantsStream({ headers: { accept = '' } }: FastifyRequest, version: A2aVersion): boolean {
  return version === '0.3' && accept.includes('text/event-stream');
}

/** A stream that fails before its first event. */
function failedStream(error: RpcError): AsyncIterable<never> {
  return { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(error) }) };
}

/**
 * `/send`, and the address of each agent type, `/a2a/{agent_type}`: A2A 0.3 and 1.0 over JSON-RPC, by `A2A-Version`. JSON-RPC errors
 * have HTTP status 200; an unknown type is 404 `NOT_FOUND`.
 */
export function sendRoutes(app: FastifyInstance, deps: Deps): void {
  const methodOf = methodLookup(methodsOf(deps));
  const tokens = new TokenWatch(deps.authenticator, deps.clocks);
  const types = createAgentTypes(deps.db);

  const contextOf = (
    request: FastifyRequest,
    reply: FastifyReply,
    version: A2aVersion,
    agentType: string | null,
    tokenEnd: AbortController,
  ): CallContext => {
    let signal: AbortSignal | undefined;
    const lastEventId = request.headers['last-event-id'];
    return {
      version,
      caller: callerOf(request),
      agentType,
      trace: traceOf(request),
      requestId: request.id,
      ip: request.ip,
      ...(typeof lastEventId === 'string' && { lastEventId }),
      bodyBytes: Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY),
      signal: () => (signal ??= responseSignal(reply.raw, deps.draining, tokenEnd.signal)),
    };
  };

  const answer = async (
    request: FastifyRequest,
    reply: FastifyReply,
    version: A2aVersion,
    agentType: string | null,
  ): Promise<unknown> => {
    const { id, method: name, params } = readCall(request.body, version);
    const method = methodOf(version, name);
    const refusal = limitedMethodRefusal(name, callerOf(request));
    if (refusal !== null) throw new PlatformError('forbidden', refusal);
    const tokenEnd = new AbortController();
    const context = contextOf(request, reply, version, agentType, tokenEnd);
    const leave = tokens.watch(request.accessToken, () => tokenEnd.abort());
    try {
      if (method.kind === 'answer') {
        const ended = () => tokenEnd.signal.aborted;
        const result = await method.call(params, context).catch((error: unknown) => {
          throw ended() ? TOKEN_EXPIRED : error;
        });
        if (ended()) throw TOKEN_EXPIRED;
        return rpcResult(id, result);
      }
      const events = await method.call(params, context).catch((error: unknown) => {
        const known = wantsStream(request, version) ? rpcErrorOf(error) : undefined;
        if (known) return failedStream(known);
        throw error;
      });
      reply.hijack();
      await sendEvents(request, reply, id, events, context, tokenEnd.signal);
      return reply;
    } finally {
      leave();
    }
  };

  const respond = async (request: FastifyRequest, reply: FastifyReply, agentType: string | null): Promise<unknown> => {
    const version = supportedVersion(namedVersion(request));
    reply.header('cache-control', 'no-store');
    try {
      if (version === null) throw new RpcError('VERSION_NOT_SUPPORTED', 'This platform speaks A2A 0.3 and 1.0.');
      const leave = deps.openCalls.enter(request.accessToken, callerOf(request));
      return await answer(request, reply, version, agentType).finally(leave);
    } catch (error) {
      return rpcFailure(rpcIdOf(request.body), asRpcError(request, error), version ?? '1.0');
    }
  };

  app.post(OPERATIONS.send.path, { config: { ...routeConfig(OPERATIONS.send), rpc: true } }, (request, reply) =>
    respond(request, reply, null),
  );
  app.post<{ Params: { agent_type: string } }>(
    OPERATIONS.sendToType.path,
    { config: { ...routeConfig(OPERATIONS.sendToType), rpc: true } },
    async (request, reply) => {
      const { agent_type: agentType } = request.params;
      const isKnown = await types.isKnown(callerOf(request).tenant_id, agentType);
      if (!isKnown) throw new PlatformError('NOT_FOUND', 'No agent of this type was ever registered.');
      return respond(request, reply, agentType);
    },
  );
}
