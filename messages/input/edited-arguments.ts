import { toolArguments } from '../../policy/guards/content.js';
import type { PolicyRequest } from '../../policy/types.js';
import { PlatformError } from '../../runtime/errors.js';
import type { MessageCore, MessageRef } from '../core.js';

/** The request of a tool call that waits, as the policies saw it. */
interface AskedCall extends Record<string, unknown> {
  tool: string | null;
  policy_request: PolicyRequest | null;
}

const ASKED_CALL = `
  SELECT tool, policy_request FROM input_requests WHERE tenant_id = $1 AND message_id = $2 AND state = 'pending' AND stage = 'tool'`;

/**
 * Lets the policies and guards decide about the arguments as an approver edited them: a human may not approve what they deny. That they ask
 * for approval is what is happening. Before the decision's transaction, because an evaluator may be asked over the network; what is
 * approved then are these very arguments.
 * @throws PlatformError forbidden when they deny
 */
export async function reviewArguments(
  core: Pick<MessageCore, 'db' | 'policies'>,
  ref: MessageRef,
  edited: Record<string, unknown>,
): Promise<void> {
  const { tenant_id, message_id } = ref;
  const [asked] = await core.db.tenant(tenant_id, (tx) => tx.query<AskedCall>(ASKED_CALL, [tenant_id, message_id]));
  if (!asked) return; // no tool call waits: the decision itself is refused
  const call: PolicyRequest = {
    ...(asked.policy_request ?? { scope: 'tool', action: 'call' }),
    tool: asked.tool ?? '',
    arguments: edited,
  };
  const verdict = await core.policies.decide(tenant_id, call, toolArguments(edited));
  if (verdict.decision !== 'deny') return;
  const who = verdict.by.source === 'policy' ? `The policy ${verdict.by.name}` : `The guard ${verdict.by.guard}`;
  throw new PlatformError('forbidden', `arguments: ${who} denies the edited arguments: ${verdict.by.reason}`);
}
