import type { Part } from '../../contracts/a2a/parts.js';
import type { InputRequest } from '../../contracts/api/messages.js';
import type { PolicyRequest } from '../../policy/policy-request.js';
import type { HeldOutput } from '../read/rows.js';
import type { InputStage } from './ask.js';

/** A request as it is shown to somebody who has only its link. */
export interface LinkedRequest {
  /** `decided`: nothing is left to decide, because somebody has, or this token was used. `withdrawn`: the message was canceled or has ended. */
  state: 'open' | 'decided' | 'expired' | 'withdrawn';
  /** Of a request that was decided: how it ended. */
  resolution?: string;
  /** What is asked: title, prompt, form, tool call with its arguments, until when. */
  request: Omit<InputRequest, 'digest'>;
  /** Where the message stood when it was asked. */
  stage: InputStage;
  /** Its digest: changes when another approver edits the arguments. */
  version: string;
  /** Who asks, in words that people understand: `the policy “no deletions”`. */
  asked_by: string;
  subject: LinkedMessage;
}

/** The message that waits. */
export interface LinkedMessage {
  kind: 'message';
  message_id: string;
  parts: Part[];
  metadata: Record<string, unknown>;
  /** What is to be approved, where it is an agent's output. */
  output?: HeldOutput;
  /** Who sent it, in words. */
  sent_by: string;
  /** The agent that acts, or that gets the message, as far as that was known. */
  agent: NonNullable<PolicyRequest['agent']>;
}
