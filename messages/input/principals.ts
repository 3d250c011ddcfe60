import type { Caller } from '../../contracts/api/auth.js';
import type { ApprovalPrincipal } from '../../contracts/api/policies/approvals.js';
import { answerRefusal, namesSlackUser } from '../../contracts/permissions.js';
import type { Tx } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import type { InputRequestRow, MessageRow } from '../read/rows.js';

/** Who decides about a request. */
export interface Principal extends ApprovalPrincipal {
  /** Counts once towards a quorum. */
  voter: string;
  /** The network address that the decision came from. */
  ip?: string | undefined;
  /** @throws PlatformError forbidden for one who may not decide about this request */
  mayAnswer(tx: Tx, row: MessageRow, request: InputRequestRow): Promise<void>;
}

/** The principal in one word, as events and `approvals` name it. */
export function principalName({ type, id }: ApprovalPrincipal): string {
  return type === 'credential' ? id : `${type}:${id}`;
}

/** A caller with an access token; the request decides whether it may answer. */
export function callerPrincipal(caller: Caller, ip?: string): Principal {
  return {
    type: 'credential',
    id: caller.credential_id,
    voter: `credential:${caller.credential_id}`,
    ip,
    mayAnswer: async (tx, row, { source, approvers, allow_self }) => {
      const [agent] = await tx.query<{ credential_id: string | null }>(
        'SELECT credential_id FROM agents WHERE tenant_id = $1 AND instance_id = $2',
        [row.tenant_id, row.instance_id],
      );
      const registered_with = agent?.credential_id ?? null;
      const question = { source, registered_with, approvers, allow_self, sent_with: row.credential_id };
      const refusal = answerRefusal(caller, question);
      if (refusal !== null) throw new PlatformError('forbidden', refusal);
    },
  };
}

/**
 * Whoever holds a callback token, over the API (`callback`) or on the page behind a link (`page`). Nobody knows who that is, so all tokens of
 * a request count as one principal.
 * @param ruleId of the rule whose delivery carried the token
 */
export function tokenPrincipal(type: 'callback' | 'page', ruleId: string, ip?: string): Principal {
  return { type, id: ruleId, voter: 'token', ip, mayAnswer: async () => undefined };
}

/** A user of Slack, proved by Slack's signature. @param ruleApprovers of the rule whose delivery had the button */
export function slackPrincipal(userId: string, ruleApprovers: readonly string[], ip?: string): Principal {
  return {
    type: 'slack',
    id: userId,
    voter: `slack:${userId}`,
    ip,
    mayAnswer: async (_tx, _row, { approvers }) => {
      if (namesSlackUser([...ruleApprovers, ...approvers], userId)) return;
      throw new PlatformError('forbidden', 'Neither the rule nor the request names this Slack user as an approver.');
    },
  };
}
