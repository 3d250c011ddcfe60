import type { MessageSendParams } from '../../contracts/a2a/a2a.js';
import type { Caller } from '../../contracts/api/auth.js';
import { isTerminal } from '../../contracts/message-states.js';
import { isOwnMessage } from '../../contracts/permissions.js';
import type { Tx } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import type { MessageCore } from '../core.js';
import { lockRunning, readMessage } from '../read/read.js';
import { inspectAnswer } from './guarded-answer.js';
import { askerOfMessage, callerPrincipal } from './principals.js';
import { readFollowUp } from './resolution.js';
import { announceAnswer } from './resolve.js';
import { checkInTime, takeDecision } from './take-decision.js';

/**
 * What a message answers, and who answers it; null for a repeat of a message that has answered.
 * @throws PlatformError as `answerFollowUp`
 */
async function readQuestion(tx: Tx, caller: Caller, message: MessageSendParams['message'], ip: string | undefined) {
  const found = await readMessage(tx, caller.tenant_id, message.taskId ?? '');
  if (!found || !isOwnMessage(caller, found.row))
    throw new PlatformError('TASK_NOT_FOUND', 'Task not found: there is none of that taskId.');
  const { row, request } = found;
  if (message.contextId !== undefined && message.contextId !== row.session_id)
    throw new PlatformError('INVALID_PARAMS', 'The contextId is not that of the task.');
  if (row.turns.some((turn) => turn.role === 'user' && turn.messageId === message.messageId)) return null;
  if (isTerminal(row.state)) throw new PlatformError('ALREADY_TERMINAL', `The task is already ${row.state}.`);
  if (!request) throw new PlatformError('NOT_AWAITING_INPUT', 'The task does not wait for an answer.');
  if (request.source !== 'agent')
    throw new PlatformError('UNSUPPORTED_OPERATION', 'This request is answered by /messages/{id}/resolve only.');
  const principal = callerPrincipal(caller, ip);
  const standsFor = await principal.mayAnswer(tx, askerOfMessage(row), request);
  checkInTime(request);
  return { row, request, voter: { principal, standsFor } };
}

/**
 * Answers an agent's question with a `message/send` that names its `taskId` (docs/a2a.md). A repeat of the same messageId succeeds.
 * @param ip the network address of the caller
 * @throws PlatformError TASK_NOT_FOUND; INVALID_PARAMS for another context or an answer that is not valid; ALREADY_TERMINAL,
 * NOT_AWAITING_INPUT, CALLBACK_TOKEN_EXPIRED; UNSUPPORTED_OPERATION for a request of a policy or guard; forbidden
 */
export async function answerFollowUp(
  core: MessageCore,
  caller: Caller,
  { message }: MessageSendParams,
  ip?: string,
): Promise<{ message_id: string }> {
  const ref = { tenant_id: caller.tenant_id, message_id: message.taskId ?? '' };
  const question = (tx: Tx) => readQuestion(tx, caller, message, ip);
  const mayAnswer = async () => (await core.db.tenant(ref.tenant_id, question)) !== null;
  await inspectAnswer(core, ref, { parts: message.parts, metadata: message.metadata }, mayAnswer);
  const answered = await core.db.tenant(ref.tenant_id, async (tx) => {
    await lockRunning(tx, ref);
    const asked = await question(tx);
    if (!asked) return null;
    const { row, request, voter } = asked;
    const state = await takeDecision(tx, voter, row, request, {
      decision: readFollowUp(request, message.parts),
      invalid: { code: 'INVALID_PARAMS', text: 'The message is not an answer to a request of kind' },
      turn: { ...message, taskId: row.message_id, contextId: row.session_id },
    });
    return { row, state };
  });
  if (answered) announceAnswer(core, answered.row, answered.state);
  return { message_id: ref.message_id };
}
