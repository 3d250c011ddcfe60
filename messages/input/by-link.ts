import type { Part } from '../../contracts/a2a/parts.js';
import type { InputRequest } from '../../contracts/api/messages.js';
import type { Tx } from '../../db/pool.js';
import type { PolicyRequest } from '../../policy/policy-request.js';
import { PlatformError } from '../../runtime/errors.js';
import type { MessageCore, MessageRef } from '../core.js';
import { readMessage } from '../read/read.js';
import { readableRequest } from '../read/readable.js';
import type { AskedRequest, HeldOutput, InputRequestRow, MessageRow } from '../read/rows.js';
import { inputRequestOf } from '../read/task.js';
import type { InputStage } from './ask.js';
import type { FoundToken } from './callback-tokens.js';
import { findHeld } from './held-output.js';
import { type LinkStanding, standingOf } from './link-standing.js';
import { type Asker, askerOfMessage } from './principals.js';

/** A request as it is shown to somebody who has only its link. */
export interface LinkedRequest {
  /** Of the request. `withdrawn`: the message was canceled or has ended. */
  state: 'open' | 'decided' | 'expired' | 'withdrawn';
  standing: LinkStanding;
  /** What is asked: title, prompt, form, tool call with its arguments, until when. */
  request: Omit<InputRequest, 'digest'>;
  /** Where the message stood when it was asked. */
  stage: InputStage;
  /** The digest of the request. It changes when another approver edits the arguments. */
  version: string;
  /** Who asks, in words that people understand: `the policy “no deletions”`. */
  asked_by: string;
  subject: LinkedMessage | LinkedPlan;
}

/** The message that waits. */
export interface LinkedMessage {
  kind: 'message';
  message_id: string;
  parts: Part[];
  metadata: Record<string, unknown>;
  /** The agent's output, if that is what is to be approved. */
  output?: HeldOutput;
  /** Who sent it, in words. */
  sent_by: string;
  /** The agent that acts, or that gets the message, as far as that was known. */
  agent: NonNullable<PolicyRequest['agent']>;
}

/** The plan that waits as a whole. */
export interface LinkedPlan {
  kind: 'plan';
  plan_id: string;
  description: string;
  max_parallel: number;
  /** Who created or proposed it, in words. */
  sent_by: string;
  steps: LinkedStep[];
}

/** A step of such a plan. */
export interface LinkedStep {
  step_id: string;
  description: string;
  /** The parts as given: outputs of other steps are not filled in. */
  parts: Part[];
  /** Who gets it. */
  agent: NonNullable<PolicyRequest['agent']>;
  /** Ids of steps. */
  depends_on: string[];
  requires_approval: boolean;
  timeout_seconds: number | null;
  max_attempts: number;
}

/** The members of a request that only its description needs. */
export interface DescribedRequest {
  state: 'pending' | 'resolved' | 'expired' | 'withdrawn';
  policy_name: string | null;
  policy_request: PolicyRequest | null;
}

type Asked = InputRequestRow & DescribedRequest;

/** Whether a request can still be decided by a link. */
function linkState(
  { state, expires_at }: Pick<DescribedRequest & AskedRequest, 'state' | 'expires_at'>,
  token: Pick<FoundToken, 'expires_at'>,
): LinkedRequest['state'] {
  if (state === 'withdrawn') return 'withdrawn';
  if (state === 'resolved') return 'decided';
  const until = Math.min(expires_at.getTime(), token.expires_at.getTime());
  return state === 'expired' || until <= Date.now() ? 'expired' : 'open';
}

/** What a link tells of a request, be it about a message or a plan. */
export async function linkedRequest(
  tx: Tx,
  asked: AskedRequest & DescribedRequest,
  token: FoundToken,
  asker: Asker,
): Promise<Omit<LinkedRequest, 'asked_by' | 'subject'>> {
  const { digest: _version, ...request } = inputRequestOf(readableRequest(asked));
  return {
    state: linkState(asked, token),
    standing: await standingOf(tx, token, asker, asked),
    request,
    stage: asked.stage,
    version: asked.digest,
  };
}

/** Who asks. @param agentType of the agent that asks, if one does */
export function askedBy(
  {
    source,
    policy_name,
    policy_id,
    guard,
  }: Pick<AskedRequest & DescribedRequest, 'source' | 'policy_name' | 'policy_id' | 'guard'>,
  agentType: string | null,
): string {
  if (source === 'policy')
    return `the policy “${policy_name ?? policy_id}”${guard === null ? '' : ` and the guard “${guard}”`}`;
  if (source === 'guard') return `the guard “${guard}”`;
  return source === 'plan' ? 'the plan' : `the agent “${agentType ?? 'unknown'}”`;
}

function agentOf({ policy_request }: Asked, { agent_type, instance_id, want_agent_type }: MessageRow) {
  const type = agent_type ?? want_agent_type;
  const known = { ...(type !== null && { agent_type: type }), ...(instance_id !== null && { instance_id }) };
  return policy_request?.agent ?? known;
}

const FIND = 'SELECT * FROM request_details WHERE tenant_id = $1 AND request_id = $2';
const SENDER = 'SELECT name FROM credentials WHERE tenant_id = $1 AND credential_id = $2';

/** Who sent a message or created a plan, by the name that people gave the credential. @param agentType of an agent that did */
export async function senderOf(
  tx: Tx,
  { tenant_id, credential_id }: Pick<MessageRow, 'tenant_id' | 'credential_id'>,
  agentType: string | null,
): Promise<string> {
  if (agentType !== null) return `the agent “${agentType}”`;
  const [credential] = await tx.query<{ name: string }>(SENDER, [tenant_id, credential_id]);
  return credential ? `“${credential.name}” (${credential_id})` : credential_id;
}

/**
 * What a callback token asks about a message. It changes nothing: opening a link is no decision.
 * @throws PlatformError unauthorized where the message is gone
 */
export function describeRequest(core: Pick<MessageCore, 'db'>, token: FoundToken & MessageRef): Promise<LinkedRequest> {
  const { tenant_id, message_id, request_id } = token;
  return core.db.tenant(tenant_id, async (tx) => {
    const message = await readMessage(tx, tenant_id, message_id);
    const [asked] = await tx.query<Asked>(FIND, [tenant_id, request_id]);
    if (!message || !asked) throw new PlatformError('unauthorized', 'The callback_token is not valid.');
    const { row } = message;
    const held = asked.stage === 'output' ? await findHeld(tx, tenant_id, message_id) : null;
    const sent_by = await senderOf(tx, row, row.sender_agent_type);
    return {
      ...(await linkedRequest(tx, asked, token, askerOfMessage(row))),
      asked_by: askedBy(asked, row.agent_type ?? row.want_agent_type),
      subject: {
        kind: 'message',
        ...{ message_id, parts: row.parts, metadata: row.metadata, sent_by, agent: agentOf(asked, row) },
        ...(held?.request_id === request_id && { output: held.held_output }),
      },
    };
  });
}
