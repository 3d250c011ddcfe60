import type { MessageSendParams } from '../../contracts/a2a.js';
import type { Caller } from '../../contracts/auth.js';
import { isTerminal } from '../../contracts/messages.js';
import { PlatformError } from '../../runtime/errors.js';
import type { MessageCore } from '../core.js';
import { lockRunning, readMessage } from '../read/read.js';
import { RpcError } from '../rpc-error.js';
import { readFollowUp } from './resolution.js';
import { checkForm, checkMayAnswer, claimRequest } from './resolve.js';

/**
 * A `message/send` that names a `taskId`: the answer to what an agent asked (a2a.md). A repeat of the same messageId is a success.
 * @throws RpcError TASK_NOT_FOUND; INVALID_PARAMS for another context or an answer that does not fit; UNSUPPORTED_OPERATION for a
 * terminal task, one that does not wait, or a request of a policy or guard
 * @throws PlatformError forbidden for who may not answer it
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
      if (!found) throw new RpcError('TASK_NOT_FOUND', 'Task not found: there is none of that taskId.', 'NOT_FOUND');
      const { row, request } = found;
      if (message.contextId !== undefined && message.contextId !== row.session_id) {
        throw new RpcError('INVALID_PARAMS', 'The contextId is not that of the task.');
      }
      if (row.turns.some((turn) => turn.role === 'user' && turn.messageId === message.messageId)) return null;
      if (isTerminal(row.state))
        throw new RpcError('UNSUPPORTED_OPERATION', `The task is already ${row.state}.`, 'ALREADY_TERMINAL');
      if (!request)
        throw new RpcError('UNSUPPORTED_OPERATION', 'The task does not wait for an answer.', 'NOT_AWAITING_INPUT');
      if (request.source !== 'agent') {
        throw new RpcError('UNSUPPORTED_OPERATION', 'This request is answered by /messages/{id}/resolve only.');
      }
      await checkMayAnswer(tx, caller, row, request);
      if (request.expires_at.getTime() <= Date.now()) {
        throw new RpcError('UNSUPPORTED_OPERATION', 'The time to answer ran out.', 'CALLBACK_TOKEN_EXPIRED');
      }
      const decision = readFollowUp(request.kind, message.parts);
      if (!decision)
        throw new RpcError('INVALID_PARAMS', `The message is not an answer to a request of kind ${request.kind}.`);
      if (request.schema || request.fields) checkForm(request, decision);
      const turn = { ...message, taskId: row.message_id, contextId: row.session_id };
      await claimRequest(tx, row, request, { decision, principal: caller.sub, turn });
      return row.session_id;
    })
    .catch((error: unknown) => {
      if (error instanceof PlatformError && error.code === 'BAD_REQUEST')
        throw new RpcError('INVALID_PARAMS', error.message);
      throw error;
    });
  if (session_id !== null) {
    core.bus.publish(ref.tenant_id, ref.message_id, { kind: 'changed' });
    core.workflowStarter.message({ ...ref, session_id });
  }
  return { message_id: ref.message_id };
}
