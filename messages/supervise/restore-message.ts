import { type MessageInput, messageWorkflowId } from '../../contracts/workflows.js';
import type { MessageCore } from '../core.js';
import { failByOperator } from './next-step.js';
import type { TemporalLink } from './temporal-link.js';

/**
 * Brings the workflow of a message that is not over in line with the record: one that is missing is created again, and a message whose
 * workflow an operator ended fails. @throws while Temporal or the database is away
 */
export async function restoreMessage(
  core: MessageCore,
  temporal: Pick<TemporalLink, 'fateOfMessage' | 'wakeMessage'>,
  row: MessageInput,
): Promise<void> {
  const { tenant_id, message_id, session_id } = row;
  const ids = { tenant_id, message_id, session_id, workflow_id: messageWorkflowId(row) };
  const fate = await temporal.fateOfMessage(row);
  if (fate === 'running') return;
  if (fate !== 'ended_by_operator') {
    core.log.info({ ...ids, fate }, 'recreating a lost workflow');
    return temporal.wakeMessage(row);
  }
  core.log.warn(ids, 'the workflow of a message was ended in Temporal; the message fails');
  const error = { code: 'INTERNAL', message: 'An operator ended the workflow of this message.' };
  await failByOperator(core, row, error);
}
