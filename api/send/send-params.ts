import type { MessageSendParams } from '../../contracts/a2a.js';
import { LIMITS } from '../../contracts/limits.js';
import { RpcError } from './rpc-error.js';

/** JSON that was read and is written again grows to this at most: `1e20`, four bytes with its comma five, becomes 22. */
const GROWTH_MAX = 5;

/**
 * What a message must hold to beyond its schema: a user's, not empty, within the bounds.
 * @param bodyBytes of the body that was read: a part of a small one is not measured
 * @throws RpcError `INVALID_PARAMS`
 */
export function checkSendParams(params: MessageSendParams, bodyBytes = Number.POSITIVE_INFINITY): void {
  const { message, metadata } = params;
  if (message.role !== 'user') throw new RpcError('INVALID_PARAMS', 'params.message.role: must be user');
  if (message.parts.length === 0) throw new RpcError('INVALID_PARAMS', 'params.message.parts: must not be empty');
  const writtenMax = bodyBytes * GROWTH_MAX;
  checkBytes('params.message.parts', message.parts, LIMITS.messagePartsBytes, writtenMax);
  checkBytes('params.message.metadata', message.metadata, LIMITS.metadataBytes, writtenMax);
  checkBytes('params.metadata', metadata, LIMITS.metadataBytes, writtenMax);
}

function checkBytes(path: string, value: unknown, most: number, writtenMax: number): void {
  if (writtenMax <= most || value === undefined || Buffer.byteLength(JSON.stringify(value)) <= most) return;
  throw new RpcError('INVALID_PARAMS', `${path}: must be at most ${most} bytes of JSON`);
}
