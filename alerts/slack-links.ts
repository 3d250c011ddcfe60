import type { Db } from '../db/pool.js';
import { type Envelope, pageUrl } from '../deliveries/envelope.js';
import { issueCallbackTokens, type RequestSubject } from '../messages/input/callback-tokens.js';
import { requireNamed, type SlackRule } from '../messages/input/principals.js';
import { PlatformError } from '../runtime/errors.js';

type Asked = RequestSubject & {
  request_id: string;
  digest: string;
  expires_at: Date;
  approvers: string[];
};

const ASKED = `
  SELECT tenant_id, message_id, plan_id, request_id, digest, expires_at, approvers FROM input_requests WHERE tenant_id = $1 AND request_id = $2`;
const FORGET = `
  DELETE FROM callback_tokens
   WHERE tenant_id = $1 AND (message_id = $2 OR plan_id = $3) AND request_id = $4 AND slack_user = $5 AND used_at IS NULL`;

/**
 * The link of one Slack user to the page of a request: what they decide there is their own decision. It replaces the one that they got before.
 * @param rule whose delivery had the button
 * @throws PlatformError unauthorized where the delivery has no token, so that its rule gives none; NOT_FOUND; forbidden unless the `approvers`
 * of the rule or of the request name the user
 */
export async function linkForSlackUser(
  db: Db,
  { tenant_id, request_id, callback_token, resolve_url }: Envelope,
  user: string,
  rule: SlackRule & { rule_id: string },
): Promise<string> {
  if (callback_token === undefined || resolve_url === undefined)
    throw new PlatformError('unauthorized', 'Deliveries of this rule carry no link.');
  return db.tenant(tenant_id, async (tx) => {
    const [asked] = await tx.query<Asked>(ASKED, [tenant_id, request_id]);
    if (!asked) throw new PlatformError('NOT_FOUND', 'What was asked is not kept any more.');
    const { approvers, ...purpose } = asked;
    requireNamed(user, rule, { approvers });
    const { rule_id, writers } = rule;
    await tx.query(FORGET, [tenant_id, asked.message_id, asked.plan_id, asked.request_id, user]);
    const [token = ''] = await issueCallbackTokens(tx, [{ ...purpose, rule_id, writers, slack_user: user }]);
    return pageUrl(resolve_url, token);
  });
}
