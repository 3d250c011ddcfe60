import type { z } from 'zod';
import { A2A_VERSIONS, type A2aVersion, type RpcId, RpcRequest, type StreamEvent } from '../../contracts/a2a/a2a.js';
import type { Caller } from '../../contracts/api/auth.js';
import type { AcceptContext } from '../../messages/accept/draft.js';
import type { StreamItem } from '../../messages/stream/stream.js';
import { PlatformError } from '../../runtime/errors.js';
import { firstProblem } from '../mount.js';
import { NOT_JSON, OTHER_TYPE } from '../plugins/json-body.js';
import { RpcError } from './rpc-error.js';

/** A JSON-RPC call with a valid envelope. */
export interface RpcCall {
  id: RpcId;
  method: string;
  params: unknown;
}

/** The id for the answer; null where the request has no valid one. */
export function rpcIdOf(body: unknown): RpcId {
  const id =
    typeof body === 'object' && body !== null && 'id' in body ? RpcRequest.shape.id.safeParse(body.id) : undefined;
  return id?.data ?? null;
}

/** Where a caller names the version of A2A. */
interface VersionSource {
  headers: Record<string, string | string[] | undefined>;
  query: unknown;
}

/** The version that a caller names in the header `A2A-Version` or in the query parameter of that name; empty where it names none. */
export function namedVersion({ headers, query }: VersionSource): string {
  const parameters = Object.entries((query ?? {}) as Record<string, string | string[]>);
  const [, parameter] = parameters.find(([name]) => name.toLowerCase() === 'a2a-version') ?? [];
  const [header, other] = [headers['a2a-version'], parameter].map((value) => [value ?? []].flat().join(',').trim());
  return header || other || '';
}

/** The supported version of a `namedVersion`, without its patch number: 0.3 for an empty one, null for one that is not supported. */
export function supportedVersion(named: string): A2aVersion | null {
  if (named === '') return '0.3';
  const [, majorMinor] = /^(\d+\.\d+)(?:\.\d+)?$/.exec(named) ?? [];
  return A2A_VERSIONS.find((known) => known === majorMinor) ?? null;
}

/**
 * Reads the envelope of a request.
 * @throws RpcError `PARSE_ERROR`, `INVALID_REQUEST` (batches too). Another content type is RpcError `CONTENT_TYPE_NOT_SUPPORTED` in 1.0 and
 * PlatformError `BAD_REQUEST` in 0.3
 */
export function readCall(body: unknown, version: A2aVersion): RpcCall {
  if (body === OTHER_TYPE) {
    const message = 'The Content-Type must be application/json.';
    throw version === '1.0'
      ? new RpcError('CONTENT_TYPE_NOT_SUPPORTED', message)
      : new PlatformError('BAD_REQUEST', message);
  }
  if (body === NOT_JSON) throw new RpcError('PARSE_ERROR', 'The body is not valid JSON in UTF-8.');
  if (Array.isArray(body)) throw new RpcError('INVALID_REQUEST', 'Batches are not supported.');
  const envelope = RpcRequest.safeParse(body);
  if (!envelope.success) throw new RpcError('INVALID_REQUEST', firstProblem(envelope.error));
  const { id, method, params } = envelope.data;
  return { id: id ?? null, method, params };
}

/** A JSON-RPC response. */
export type RpcResponse = { jsonrpc: '2.0'; id: RpcId } & (
  | { result: unknown }
  | { error: { code: number; message: string; data?: unknown } }
);

/** The answer to a request that succeeded. */
export function rpcResult(id: RpcId, result: unknown): RpcResponse {
  return { jsonrpc: '2.0', id, result };
}

/** `error.data`: the platform's code in 0.3, an ErrorInfo in 1.0. */
function errorData({ reason, code }: RpcError, version: A2aVersion): { data?: unknown } {
  if (version === '0.3') return code === undefined ? {} : { data: { code } };
  const metadata = code === undefined ? {} : { metadata: { code } };
  return {
    data: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'a2a-protocol.org', ...metadata }],
  };
}

/** The answer to a request that failed, as this version of A2A writes errors. */
export function rpcFailure(id: RpcId, error: RpcError, version: A2aVersion): RpcResponse {
  return {
    jsonrpc: '2.0',
    id,
    error: { code: error.rpcCode, message: error.message, ...errorData(error, version) },
  };
}

/** The call of a method of `/send`. */
export interface CallContext {
  version: A2aVersion;
  caller: Caller;
  /** The agent type whose address was called (`/a2a/{agent_type}`); null for `/send`. */
  agentType: string | null;
  trace: Omit<AcceptContext, 'method'>;
  requestId: string;
  /** The network address of the caller. */
  ip: string;
  /** The cursor after which a stream continues. */
  lastEventId?: string;
  /** Size of the request body; infinite where it is unknown. */
  bodyBytes: number;
  /** Aborts when the caller leaves or the process drains. Created on the first call. */
  signal: () => AbortSignal;
}

/** A method in one version of A2A: its name, its params, and how its result (of a stream, each event) is written; absent: as it is. */
interface MethodVersion<Params, Result> {
  name: string;
  params: z.ZodType<Params>;
  result?: (result: Result) => unknown;
}
type MethodVersions<Params, Result> = Partial<Record<A2aVersion, MethodVersion<Params, Result>>>;

/** An event of a stream in its wire form, and the cursor with which a reader continues after it. */
export interface WireItem {
  cursor: string;
  event: unknown;
}

/** A method on wire forms: it parses its params and writes its result. Rejects with RpcError or PlatformError. */
export type Method =
  | { kind: 'answer'; call: (params: unknown, context: CallContext) => Promise<unknown> }
  /** The call resolves before the first event; until then it may still reject. */
  | { kind: 'stream'; call: (params: unknown, context: CallContext) => Promise<AsyncIterable<WireItem>> };

/** An entry of the method table. */
export interface NamedMethod {
  version: A2aVersion;
  name: string;
  method: Method;
}

function parseParams<Params>(schema: z.ZodType<Params>, params: unknown): Params {
  const parsed = schema.safeParse(params);
  if (parsed.success) return parsed.data;
  throw new RpcError('INVALID_PARAMS', `params.${firstProblem(parsed.error)}`);
}

function named<Params, Result>(
  versions: MethodVersions<Params, Result>,
  method: (version: MethodVersion<Params, Result>) => Method,
): NamedMethod[] {
  return (Object.entries(versions) as [A2aVersion, MethodVersion<Params, Result>][]).map(([version, inVersion]) => ({
    version,
    name: inVersion.name,
    method: method(inVersion),
  }));
}

/** A method that answers once. */
export function answering<Params, Result>(
  answer: (params: Params, context: CallContext) => Promise<Result>,
  versions: MethodVersions<Params, Result>,
): NamedMethod[] {
  return named(versions, ({ params: schema, result }) => ({
    kind: 'answer',
    call: async (params, context) => {
      const answered = await answer(parseParams(schema, params), context);
      return result ? result(answered) : answered;
    },
  }));
}

/** A method that answers with a stream of events. */
export function streaming<Params>(
  open: (params: Params, context: CallContext) => Promise<AsyncIterable<StreamItem>>,
  versions: MethodVersions<Params, StreamEvent>,
): NamedMethod[] {
  return named(versions, ({ params: schema, result }) => ({
    kind: 'stream',
    call: async (params, context) => toWireItems(await open(parseParams(schema, params), context), result),
  }));
}

async function* toWireItems(
  items: AsyncIterable<StreamItem>,
  write: (event: StreamEvent) => unknown = (event) => event,
): AsyncGenerator<WireItem> {
  for await (const { cursor, event } of items) yield { cursor, event: write(event) };
}

/** Until when, and from where, a caller reads a stream. */
export function streamOptions({ signal, lastEventId }: CallContext): { signal: AbortSignal; after?: string } {
  return { signal: signal(), ...(lastEventId !== undefined && { after: lastEventId }) };
}

/**
 * The methods of `/send` by version and name.
 * @returns a lookup; throws RpcError `METHOD_NOT_FOUND`, also for a name of the other version
 */
export function methodLookup(methods: NamedMethod[]): (version: A2aVersion, name: string) => Method {
  const known = new Map(methods.map(({ version, name, method }) => [`${version} ${name}`, method]));
  return (version, name) => {
    const method = known.get(`${version} ${name}`);
    if (method) return method;
    const other = A2A_VERSIONS.find((one) => known.has(`${one} ${name}`));
    const remedy = other ? ` It is of A2A ${other}: send the header A2A-Version: ${other}.` : '';
    throw new RpcError('METHOD_NOT_FOUND', `There is no such method in A2A ${version}.${remedy}`);
  };
}
