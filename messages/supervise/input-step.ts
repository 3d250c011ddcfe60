import type { Tx } from '../../db/pool.js';
import { newEventId, newId } from '../../runtime/ids.js';
import type { AskedRequest, InputRequestRow, RunningRow } from '../read/rows.js';
import type { WaitStep } from './step.js';

/**
 * What an operator reads about a request in the Temporal UI. It goes into the history: identifiers, times and numbers, no content.
 * @param id of its message or plan
 */
export function awaitedText(request: AskedRequest, id: string): string {
  const { kind, source, tool, policy_id, guard, approvers, quorum, approvals } = request;
  const about = tool === null ? '' : ` of the tool call \`${tool}\``;
  const byWhom = policy_id ?? guard;
  const asker = byWhom === null ? `the ${source}` : `the ${source} \`${byWhom}\``;
  const scope = source === 'agent' ? 'read' : 'admin';
  const named = approvers.map((approver) => `\`${approver}\``).join(', ');
  const who = `a token with the scope ${scope}${named === '' ? '' : `, or ${named}`}, or a callback token`;
  const count = quorum === 1 ? '' : `\n- Approvals: ${approvals.length} of ${quorum}`;
  return [
    `Waits for a human: ${kind}${about}, asked by ${asker}.`,
    '',
    `- Who may decide: ${who}${count}`,
    `- Since ${request.requested_at.toISOString()}, until ${request.expires_at.toISOString()}`,
    `- To decide: \`POST /messages/${id}/resolve\` with \`{"resolution": …, "request_id": "${request.request_id}"}\``,
  ].join('\n');
}

/** Writes the reminder of a request, if it is due. @returns the request afterwards */
async function remindIfDue<Request extends AskedRequest>(tx: Tx, request: Request, now: Date): Promise<Request> {
  if (request.remind_at === null || request.remind_at > now) return request;
  const [reminded] = await tx.query<Pick<AskedRequest, 'approvers' | 'remind_at'>>(
    'SELECT approvers, remind_at FROM remind_of_request($1, $2, $3, $4)',
    [request.tenant_id, request.request_id, now, newEventId()],
  );
  return { ...request, ...reminded };
}

/** A request that nobody has decided, and how long it still waits. */
interface OpenWait<Request> {
  request: Request;
  /** Milliseconds until the request expires. */
  left_ms: number;
  /** Milliseconds until its next reminder, or until it expires. */
  wait_ms: number;
}

/**
 * Writes the reminder that is due of an open request, or the audit row of one that nobody has decided in time.
 * @returns null when the time is up: the message or plan fails
 */
export async function remindOrExpire<Request extends AskedRequest>(
  tx: Tx,
  asked: Request,
  now: Date,
): Promise<OpenWait<Request> | null> {
  const left_ms = asked.expires_at.getTime() - now.getTime();
  if (left_ms <= 0) {
    await tx.query('SELECT record_expiry($1, $2, $3)', [asked.tenant_id, asked.request_id, newId('apv')]);
    return null;
  }
  const request = await remindIfDue(tx, asked, now);
  const remindMs = request.remind_at ? request.remind_at.getTime() - now.getTime() : left_ms;
  return { request, left_ms, wait_ms: Math.max(1, Math.min(left_ms, remindMs)) };
}

/** The step of a message that waits for a human, after `remindOrExpire`. @returns null when the time is up: the message fails */
export async function inputStep(
  tx: Tx,
  { agent_type, state }: Pick<RunningRow, 'agent_type' | 'state'>,
  asked: InputRequestRow,
  now: Date,
): Promise<WaitStep | null> {
  const wait = await remindOrExpire(tx, asked, now);
  if (!wait) return null;
  const { request, wait_ms } = wait;
  const details = awaitedText(request, request.message_id);
  return { kind: 'waits', waits_for: 'person', state, agent_type, details, wait_ms };
}
