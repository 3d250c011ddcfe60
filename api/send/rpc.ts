import { MessageSendParams, type RpcId, RpcRequest } from '../../contracts/a2a.js';
import { LIMITS } from '../../contracts/limits.js';
import { RpcError } from '../../messages/rpc-error.js';
import { firstProblem } from '../mount.js';
import { NOT_JSON } from '../plugins/json-body.js';

/** Methods of A2A 0.3 that this platform serves. */
const METHODS = ['message/send', 'message/stream'] as const;
export type Method = (typeof METHODS)[number];

/** A JSON-RPC call whose envelope is sound. */
export interface RpcCall {
  id: RpcId;
  method: Method;
  params: MessageSendParams;
}

/** The id to answer with, whatever else is wrong with the request. */
export function rpcIdOf(body: unknown): RpcId {
  const id =
    typeof body === 'object' && body !== null && 'id' in body ? RpcRequest.shape.id.safeParse(body.id) : undefined;
  return id?.data ?? null;
}

/** @throws RpcError `VERSION_NOT_SUPPORTED` unless the header is absent or names 0.3 */
export function checkVersion(header: string | string[] | undefined): void {
  if (header === undefined) return;
  const version = [header].flat().join(',').trim();
  if (version === '' || /^0\.3(\.\d+)?$/.test(version)) return;
  throw new RpcError('VERSION_NOT_SUPPORTED', 'This platform speaks A2A 0.3.');
}

/** JSON that was read and is written again grows to this at most: `1e20`, four bytes with its comma five, becomes 22. */
const GROWTH_MAX = 5;

/**
 * Reads a request of `/send`.
 * @param bodyBytes of the body that was read: a part of a small one is not measured
 * @throws RpcError `PARSE_ERROR`, `INVALID_REQUEST` (batches too), `METHOD_NOT_FOUND`, `INVALID_PARAMS`, `PUSH_NOT_SUPPORTED`
 */
export function readCall(body: unknown, bodyBytes = Number.POSITIVE_INFINITY): RpcCall {
  if (body === NOT_JSON) throw new RpcError('PARSE_ERROR', 'The body is not valid JSON in UTF-8.');
  if (Array.isArray(body)) throw new RpcError('INVALID_REQUEST', 'Batches are not supported.');
  const envelope = RpcRequest.safeParse(body);
  if (!envelope.success) throw new RpcError('INVALID_REQUEST', firstProblem(envelope.error));
  const method = METHODS.find((name) => name === envelope.data.method);
  if (!method) throw new RpcError('METHOD_NOT_FOUND', 'There is no such method in A2A 0.3 on this platform.');
  return { id: envelope.data.id ?? null, method, params: readParams(envelope.data.params, bodyBytes) };
}

function readParams(value: unknown, bodyBytes: number): MessageSendParams {
  const parsed = MessageSendParams.safeParse(value);
  if (!parsed.success) throw new RpcError('INVALID_PARAMS', `params.${firstProblem(parsed.error)}`);
  const { message, metadata, configuration } = parsed.data;
  if (message.role !== 'user') throw new RpcError('INVALID_PARAMS', 'params.message.role: must be user');
  if (message.parts.length === 0) throw new RpcError('INVALID_PARAMS', 'params.message.parts: must not be empty');
  const writtenMax = bodyBytes * GROWTH_MAX;
  checkBytes('params.message.parts', message.parts, LIMITS.messagePartsBytes, writtenMax);
  checkBytes('params.message.metadata', message.metadata, LIMITS.metadataBytes, writtenMax);
  checkBytes('params.metadata', metadata, LIMITS.metadataBytes, writtenMax);
  if (configuration?.pushNotificationConfig !== undefined) {
    throw new RpcError('PUSH_NOT_SUPPORTED', 'Push notifications are not supported.');
  }
  return parsed.data;
}

function checkBytes(path: string, value: unknown, most: number, writtenMax: number): void {
  if (writtenMax <= most || value === undefined || Buffer.byteLength(JSON.stringify(value)) <= most) return;
  throw new RpcError('INVALID_PARAMS', `${path}: must be at most ${most} bytes of JSON`);
}

/** A JSON-RPC response. */
export type RpcResponse = { jsonrpc: '2.0'; id: RpcId } & (
  | { result: unknown }
  | { error: { code: number; message: string; data?: unknown } }
);

export function rpcResult(id: RpcId, result: unknown): RpcResponse {
  return { jsonrpc: '2.0', id, result };
}

export function rpcFailure(id: RpcId, error: RpcError): RpcResponse {
  const data = error.code === undefined ? {} : { data: { code: error.code } };
  return { jsonrpc: '2.0', id, error: { code: error.rpcCode, message: error.message, ...data } };
}
