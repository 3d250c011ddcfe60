import type { Tx } from '../../db/pool.js';
import type { PolicyRequest } from '../../policy/policy-request.js';
import { PlatformError } from '../../runtime/errors.js';
import type { MessageCore } from '../core.js';
import { readMessage } from '../read/read.js';
import { readableRequest } from '../read/readable.js';
import type { InputRequestRow, MessageRow } from '../read/rows.js';
import { inputRequestOf } from '../read/task.js';
import { findCallbackToken } from './callback-tokens.js';
import { findHeld } from './held-output.js';
import type { LinkedRequest } from './linked-request.js';
import { tokenPrincipal } from './principals.js';
import { type Resolution, type Resolved, resolveAs } from './resolve.js';

type Asked = InputRequestRow & {
  state: 'pending' | 'resolved' | 'expired' | 'withdrawn';
  policy_name: string | null;
  policy_request: PolicyRequest | null;
  answer: { resolution: string } | null;
} & Record<string, unknown>;

function stateOf(
  { state, expires_at }: Asked,
  token: { used_at: Date | null; expires_at: Date },
): LinkedRequest['state'] {
  if (state === 'withdrawn') return 'withdrawn';
  if (state === 'resolved' || token.used_at !== null) return 'decided';
  const until = Math.min(expires_at.getTime(), token.expires_at.getTime());
  return state === 'expired' || until <= Date.now() ? 'expired' : 'open';
}

function askedBy(
  { source, policy_name, policy_id, guard }: Asked,
  { agent_type, want_agent_type }: MessageRow,
): string {
  if (source === 'policy')
    return `the policy “${policy_name ?? policy_id}”${guard === null ? '' : ` and the guard “${guard}”`}`;
  if (source === 'guard') return `the guard “${guard}”`;
  return source === 'plan' ? 'the plan' : `the agent “${agent_type ?? want_agent_type ?? 'unknown'}”`;
}

function agentOf({ policy_request }: Asked, { agent_type, instance_id, want_agent_type }: MessageRow) {
  const type = agent_type ?? want_agent_type;
  const known = { ...(type !== null && { agent_type: type }), ...(instance_id !== null && { instance_id }) };
  return policy_request?.agent ?? known;
}

const CHANGED = 'The arguments were edited since you saw them. Look at them again.';
const FIND = 'SELECT * FROM request_details WHERE tenant_id = $1 AND request_id = $2';
const SENDER = 'SELECT name FROM credentials WHERE tenant_id = $1 AND credential_id = $2';

/** Who sent a message, by the name that people gave the credential. */
async function senderOf(tx: Tx, { tenant_id, credential_id, sender_agent_type }: MessageRow): Promise<string> {
  if (sender_agent_type !== null) return `the agent “${sender_agent_type}”`;
  const [credential] = await tx.query<{ name: string }>(SENDER, [tenant_id, credential_id]);
  return credential ? `“${credential.name}” (${credential_id})` : credential_id;
}

/**
 * What a callback token asks. Changes nothing: whoever opens a link has decided nothing.
 * @throws PlatformError unauthorized for a token that nobody issued, or whose message is gone
 */
export async function describeRequest(core: Pick<MessageCore, 'db'>, token: string): Promise<LinkedRequest> {
  const found = await findCallbackToken(core.db, token);
  const { tenant_id, message_id, request_id } = found;
  const { message, asked, held, sent_by } = await core.db.tenant(tenant_id, async (tx) => {
    const message = await readMessage(tx, tenant_id, message_id);
    const [asked] = await tx.query<Asked>(FIND, [tenant_id, request_id]);
    const held = asked?.stage === 'output' ? await findHeld(tx, tenant_id, message_id) : null;
    return { message, asked, held, sent_by: message ? await senderOf(tx, message.row) : '' };
  });
  if (!message || !asked) throw new PlatformError('unauthorized', 'The callback_token is not valid.');
  const { row } = message;
  const { digest: _version, ...request } = inputRequestOf(readableRequest(asked));
  return {
    state: stateOf(asked, found),
    ...(asked.answer && { resolution: asked.answer.resolution }),
    request,
    stage: asked.stage,
    version: asked.digest,
    asked_by: askedBy(asked, row),
    subject: {
      kind: 'message',
      ...{ message_id, parts: row.parts, metadata: row.metadata, sent_by, agent: agentOf(asked, row) },
      ...(held?.request_id === request_id && { output: held.held_output }),
    },
  };
}

/**
 * Decides by a callback token on the page behind its link. The token is spent with the decision.
 * @param seen.ip the network address that the decision came from
 * @param seen.version of the request as it was shown, by default as the token's delivery announced it; what was edited since is not decided
 * @throws PlatformError as `resolveMessage`
 */
export async function decideByLink(
  core: MessageCore,
  token: string,
  answer: Pick<Resolution, 'resolution' | 'comment' | 'data'>,
  { ip, version }: { ip?: string; version?: string } = {},
): Promise<Resolved> {
  const { tenant_id, message_id } = await findCallbackToken(core.db, token);
  return resolveAs(core, { tenant_id, message_id }, answer, async (tx, takeToken) => {
    const { request_id, digest, ...rule } = await takeToken(tx, tenant_id, token);
    return {
      principal: tokenPrincipal('page', rule, ip),
      request_id,
      seen: { digest: version ?? digest, changed: CHANGED },
    };
  });
}
