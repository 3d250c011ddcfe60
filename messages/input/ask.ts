import type { AgentInputRequest, Executor, InputRequest } from '../../contracts/api/messages.js';
import type { Tx } from '../../db/pool.js';
import type { ApprovalTerms, PolicyRequest } from '../../policy/policy-request.js';
import { newEventId } from '../../runtime/ids.js';
import type { MessageRef } from '../core.js';

/**
 * Where a message stands when a human is asked, which decides how it goes on after the answer:
 * - `admission`, `dispatch`, `plan`: nothing is at work; it is routed when the request is approved, and fails when it is rejected;
 * - `output`: its agent has answered, and the answer is held; it is delivered when the request is approved, and the message fails when it is
 *   rejected;
 * - `tool`: its dispatch is at work and goes on, whatever is decided; with `on_reject: fail` a rejection fails the message;
 * - `agent`: the agent asked and its dispatch has ended; a new dispatch carries the answer, also a negative one.
 * `proposal` is the stage of a request about a plan as a whole, which starts when it is approved.
 */
export type InputStage = 'admission' | 'dispatch' | 'tool' | 'output' | 'plan' | 'agent' | 'proposal';

/** A request to a human that is to be written. */
export interface NewInputRequest extends Pick<AgentInputRequest, 'schema' | 'fields' | 'tool' | 'arguments'> {
  request_id: string;
  kind: InputRequest['kind'];
  source: InputRequest['source'];
  stage: InputStage;
  title: string;
  prompt: string;
  /** What the policy or guard was asked about, as its event names it. */
  action?: string;
  /** Of a tool call. */
  executor?: Executor;
  /** The path that a guard objects to. */
  path?: string;
  policy_id?: string;
  policy_name?: string;
  guard?: string;
  /** What the policies were asked, without the arguments: an approver may edit those of a tool call, and those of a message are in its row. */
  policy_request?: PolicyRequest;
  terms: ApprovalTerms;
  /** Of what is asked about: `digestOf`. */
  digest: string;
}

/**
 * A request as the SQL functions take it: a `new_input_request` (db/functions/input/open_request.sql). Form and arguments are JSON as text, which keeps the
 * order of their members. The id of its events is made here, so that a repeated statement writes the same events.
 */
export function inputRequestCall({ terms, schema, arguments: given, ...request }: NewInputRequest) {
  const { timeout_seconds, ...rest } = terms;
  return {
    ...request,
    ...(schema && { schema: JSON.stringify(schema) }),
    ...(given && { arguments: JSON.stringify(given) }),
    ...rest,
    ...{ timeout_ms: timeout_seconds * 1_000, event_id: newEventId() },
  };
}

/**
 * Asks a human about a message: the request, the message's state `input-required` and the events. The caller holds the locks of its session
 * and of the message, which is `submitted` or `working` and has no dispatch at work, except at the stage `tool`. After the commit,
 * the caller tells the streams.
 * @returns false, and nothing is written, when a request is open already
 */
export async function askInput(
  tx: Tx,
  { tenant_id, message_id }: MessageRef,
  request: NewInputRequest,
): Promise<boolean> {
  const [row] = await tx.query<{ asked: boolean }>('SELECT ask_about_message($1, $2, $3) AS asked', [
    tenant_id,
    message_id,
    JSON.stringify(inputRequestCall(request)),
  ]);
  return row?.asked === true;
}
