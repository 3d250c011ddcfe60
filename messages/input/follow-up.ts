import type { MessageSendParams } from '../../contracts/a2a/a2a.js';
import type { Caller } from '../../contracts/api/auth.js';
import { isTerminal } from '../../contracts/api/messages.js';
import { PlatformError } from '../../runtime/errors.js';
import type { MessageCore } from '../core.js';
import { lockRunning, readMessage } from '../read/read.js';
import { readFollowUp } from './resolution.js';
import { checkForm, checkMayAnswer, claimRequest } from './resolve.js';

/**
 * Answers an agent's question with a `message/send` that names its `taskId` (docs/a2a.md). A repeat of the same messageId succeeds.
 * @throws PlatformError TASK_NOT_FOUND; INVALID_PARAMS for another context or an answer that is not valid; ALREADY_TERMINAL,
 * NOT_AWAITING_INPUT, CALLBACK_TOKEN_EXPIRED; UNSUPPORTED_OPERATION for a request of a policy or guard; forbidden
 */
export async function answerFollowUp(
  core: MessageCore,
  caller: Caller,
  params: MessageSendParams,
): Promise<{ message_id: string }> {
  const { message } = params;
  const ref = { tenant_id: caller.tenant_id, message_id: message.taskId ?? '' };
  const session_id = await core.db
    .tenant(ref.tenant_id, async (tx) => {
      await lockRunning(tx, ref);
      const found = await readMessage(tx, ref.tenant_id, ref.message_id);
      if (!found) throw new PlatformError('TASK_NOT_FOUND', 'Task not found: there is none of that taskId.');
      const { row, request } = found;
      if (message.contextId !== undefined && message.contextId !== row.session_id) {
        throw new PlatformError('INVALID_PARAMS', 'The contextId is not that of the task.');
      }
      if (row.turns.some((turn) => turn.role === 'user' && turn.messageId === message.messageId)) return null;
      if (isTerminal(row.state)) throw new PlatformError('ALREADY_TERMINAL', `The task is already ${row.state}.`);
      if (!request) throw new PlatformError('NOT_AWAITING_INPUT', 'The task does not wait for an answer.');
      if (request.source !== 'agent') {
        throw new PlatformError('UNSUPPORTED_OPERATION', 'This request is answered by /messages/{id}/resolve only.');
      }
      await checkMayAnswer(tx, caller, row, request);
      if (request.expires_at.getTime() <= Date.now()) {
        throw new PlatformError('CALLBACK_TOKEN_EXPIRED', 'The time to answer ran out.');
      }
      const decision = readFollowUp(request.kind, message.parts);
      if (!decision)
        throw new PlatformError('INVALID_PARAMS', `The message is not an answer to a request of kind ${request.kind}.`);
      if (request.schema || request.fields) checkForm(request, decision);
      const turn = { ...message, taskId: row.message_id, contextId: row.session_id };
      await claimRequest(tx, row, request, { decision, principal: caller.sub, turn });
      return row.session_id;
    })
    .catch((error: unknown) => {
      if (error instanceof PlatformError && error.code === 'BAD_REQUEST')
        throw new PlatformError('INVALID_PARAMS', error.message);
      throw error;
    });
  if (session_id !== null) {
    core.bus.publish(ref.tenant_id, ref.message_id, { kind: 'changed' });
    core.workflowStarter.message({ ...ref, session_id });
  }
  return { message_id: ref.message_id };
}
