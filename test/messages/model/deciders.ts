import type { Caller } from '../../../contracts/api/auth.js';
import type { Db } from '../../../db/pool.js';
import { issueCallbackTokens } from '../../../messages/input/callback-tokens.js';
import { byCaller, byLink, byToken, type Identify } from '../../../messages/input/identify.js';
import { slackPrincipal } from '../../../messages/input/principals.js';
import { callerOf } from '../../setup/core.js';
import type { FreshDatabase } from '../../setup/database.js';

export const TENANT = 'ten_00000000-0000-7000-8000-000000000001';
export const SENDER = callerOf(TENANT);

export function approver(variant: number): Caller {
  const id = `cred_${variant % 4}`;
  return { ...SENDER, credential_id: id, sub: id };
}

/** Twice as often as each other way. */
const WAYS = ['credential', 'credential', 'callback', 'page', 'slack'] as const;
const LATEST = `
  SELECT request_id, digest, expires_at FROM input_requests WHERE message_id = $1 ORDER BY requested_at DESC, request_id DESC LIMIT 1`;

/** Chooses who decides about a message, and how they prove it. @param db outlives the processes that are killed */
export async function wayOf(
  database: FreshDatabase,
  db: Db,
  message_id: string,
  variant: number,
): Promise<{ way: string; identify: Identify }> {
  const way = WAYS[variant % WAYS.length] ?? 'credential';
  const rule = { rule_id: 'rule_1', writers: [`cred_${variant % 4}`], approvers: ['U1'] };
  if (way === 'slack') return { way, identify: async () => ({ principal: slackPrincipal('U1', rule) }) };
  const [asked] = await database.query<{ request_id: string; digest: string; expires_at: Date }>(LATEST, [message_id]);
  if (way === 'credential' || !asked) return { way: 'credential', identify: byCaller(approver(variant)) };
  const purpose = { tenant_id: TENANT, message_id, plan_id: null, ...asked, ...rule };
  const [token = ''] = await db.tenant(TENANT, (tx) => issueCallbackTokens(tx, [purpose]));
  return { way, identify: way === 'page' ? byLink(TENANT, token, {}) : byToken(TENANT, token) };
}
