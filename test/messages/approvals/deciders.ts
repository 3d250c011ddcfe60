import type { Caller } from '../../../contracts/api/auth.js';
import type { Db } from '../../../db/pool.js';
import type { AnswerOrFailure } from '../../../messages/dispatch/dispatches.js';
import { issueCallbackTokens } from '../../../messages/input/callback-tokens.js';
import { byCaller, byLink, byToken, type Identify } from '../../../messages/input/identify.js';
import { slackPrincipal } from '../../../messages/input/principals.js';
import { callerOf } from '../../setup/core.js';
import type { FreshDatabase } from '../../setup/database.js';

export const TENANT = 'ten_00000000-0000-7000-8000-000000000002';
export const SENDER = callerOf(TENANT);

export const approver = (variant: number): Caller => ({
  ...SENDER,
  credential_id: `cred_${variant % 4}`,
  sub: `cred_${variant % 4}`,
});
/** A guard that holds an agent's answer until a human approves it. */
const HELD = {
  guard: 'secrets',
  rule: 'token',
  decision: 'require_approval',
  reason: 'It holds a secret.',
  path: '',
} as const;
const TEXT = [{ artifactId: 'a', parts: [{ kind: 'text' as const, text: 'done' }] }];

/** What an agent answers: a question, an answer or a question that a guard holds, or, rarely, a plain answer. */
export function answerOf(variant: number): AnswerOrFailure {
  const kind = variant % 2 === 0 ? ('confirmation' as const) : ('approval' as const);
  const question = { state: 'input-required' as const, artifacts: [], input_request: { kind, title: 'May I?' } };
  if (variant < 5) return question;
  if (variant < 8) return { state: 'completed', artifacts: TEXT, held: HELD };
  return variant < 11 ? { ...question, held: HELD } : { state: 'completed', artifacts: TEXT };
}

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
