import { A2A_VERSIONS, type A2aVersion, type RpcId, RpcRequest } from '../../contracts/a2a/a2a.js';
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
  const [, minor] = /^(\d+\.\d+)(?:\.\d+)?$/.exec(named) ?? [];
  return A2A_VERSIONS.find((known) => known === minor) ?? null;
}

/**
 * Reads the envelope of a request.
 * @throws RpcError `PARSE_ERROR`, `INVALID_REQUEST` (batches too). Another content type is RpcError `CONTENT_TYPE_NOT_SUPPORTED` in 1.0 and
 * PlatformError `BAD_REQUEST` in 0.3 (decisions.md, Conventions)
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

export function rpcFailure(id: RpcId, error: RpcError, version: A2aVersion): RpcResponse {
  return {
    jsonrpc: '2.0',
    id,
    error: { code: error.rpcCode, message: error.message, ...errorData(error, version) },
  };
}
