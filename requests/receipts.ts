import { createHmac } from 'node:crypto';
import type { TokenIssuer } from '../auth/tokens.js';
import type { Caller } from '../contracts/api/auth.js';
import type { Receipt } from '../contracts/api/policies/requests.js';
import type { Db, Tx } from '../db/pool.js';
import { digestOf } from '../messages/digest.js';
import { PlatformError } from '../runtime/errors.js';
import { readSummary } from './request-list.js';
import { decisionsOf } from './request-records.js';

type Method = Receipt['principals'][number]['method'];
const METHODS: Record<Receipt['principals'][number]['type'], Method> = {
  credential: 'access_token',
  person: 'access_token',
  callback: 'callback_token',
  page: 'link',
  slack: 'slack',
  temporal: 'temporal_signal',
  system: 'timeout',
};

interface Salted {
  salt: Buffer;
  arguments: Record<string, unknown> | null;
}
const SALTED = 'SELECT salt, arguments FROM input_requests WHERE tenant_id = $1 AND request_id = $2';

/** @throws PlatformError CONFLICT for a request that nobody has decided */
async function readReceipt(tx: Tx, caller: Caller, requestId: string): Promise<{ receipt: Receipt; salt: Buffer }> {
  const { tenant_id } = caller;
  const request = await readSummary(tx, caller, requestId);
  const decided = (await decisionsOf(tx, tenant_id, [request])).get(requestId);
  const [row] = await tx.query<Salted>(SALTED, [tenant_id, requestId]);
  if (!decided || !row) throw new PlatformError('CONFLICT', 'The request is not decided: there is nothing to receipt.');
  const keyed = (digest: string) => createHmac('sha256', row.salt).update(digest).digest('hex');
  const { message_id, plan_id, digest } = request;
  const receipt = {
    request_id: requestId,
    ...(message_id !== null && { message_id }),
    ...(plan_id !== null && { plan_id }),
    tenant_id,
    request_digest: keyed(digest),
    resolution: decided.resolution,
    ...(row.arguments && { arguments_digest: keyed(digestOf(row.arguments)) }),
    principals: decided.principals.map(({ type, id }) => ({ type, id, method: METHODS[type] })),
    decided_at: decided.at,
  };
  return { receipt, salt: row.salt };
}

/**
 * A receipt of a decision, for whoever may read its message or plan: who decided what, when and how, signed. The same whenever it is asked for,
 * until the key is rotated.
 * @throws PlatformError NOT_FOUND; CONFLICT for a request that nobody has decided
 */
export async function getReceipt(
  { db, tokens }: { db: Db; tokens: Pick<TokenIssuer, 'issueReceipt'> },
  caller: Caller,
  requestId: string,
): Promise<{ receipt: string; salt: string }> {
  const { receipt, salt } = await db.tenant(caller.tenant_id, (tx) => readReceipt(tx, caller, requestId));
  return { receipt: await tokens.issueReceipt(receipt), salt: salt.toString('base64url') };
}
