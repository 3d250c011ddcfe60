import type { AgentInputRequest } from '../../contracts/messages.js';
import { textOf } from '../../contracts/parts.js';
import { recordEvent } from '../../db/events.js';
import type { Tx } from '../../db/pool.js';
import { newId } from '../../runtime/ids.js';
import type { AnswerOrFailure } from '../dispatch/dispatches.js';
import { eventPlace } from '../dispatch/finish.js';
import type { MessageRow } from '../read/rows.js';
import { agentMessage } from '../read/task.js';

const TITLE_CHARS = 512;

function kindOf(asked: AgentInputRequest): 'approval' | 'form' | 'confirmation' {
  return asked.kind ?? (asked.schema || asked.fields ? 'form' : 'confirmation');
}

/**
 * Opens an agent's question to a human: request row, message `input-required`, the session's slot given back, and the event.
 * The caller holds the message's lock and has closed the dispatch.
 */
export async function openAgentRequest(
  tx: Tx,
  row: MessageRow,
  outcome: AnswerOrFailure,
  expiryMs: number,
): Promise<void> {
  const asked = outcome.input_request ?? {};
  const said = outcome.status_message ? textOf(outcome.status_message.parts) : '';
  const prompt = asked.prompt ?? said;
  const title =
    asked.title ?? (prompt.split('\n', 1)[0] || 'The agent needs an answer.').slice(0, TITLE_CHARS).toWellFormed();
  const requestId = newId('req');
  await tx.query(
    `INSERT INTO input_requests (tenant_id, request_id, message_id, session_id, kind, source, title, prompt, schema, fields,
       tool, arguments, state, expires_at)
     VALUES ($1, $2, $3, $4, $5, 'agent', $6, $7, $8, $9, $10, $11, 'pending', now() + $12 * interval '1 ms')`,
    [
      row.tenant_id,
      requestId,
      row.message_id,
      row.session_id,
      kindOf(asked),
      title,
      prompt,
      asked.schema ? JSON.stringify(asked.schema) : null,
      asked.fields ? JSON.stringify(asked.fields) : null,
      asked.tool ?? null,
      asked.arguments ? JSON.stringify(asked.arguments) : null,
      expiryMs,
    ],
  );
  const question = agentMessage(
    row,
    requestId,
    outcome.status_message?.parts ?? [{ kind: 'text', text: prompt || title }],
  );
  await tx.query(
    `UPDATE messages SET state = 'input-required', holds_slot = false, suspends_session = true, status_message = $3,
       turns = turns || $4::jsonb, remote_task_id = coalesce($5, remote_task_id), remote_context_id = coalesce($6, remote_context_id),
       resolution = NULL, unrouted_since = NULL, wake_requested_at = now(), updated_at = now()
     WHERE tenant_id = $1 AND message_id = $2`,
    [
      row.tenant_id,
      row.message_id,
      outcome.status_message ? JSON.stringify(outcome.status_message) : null,
      JSON.stringify([question]),
      outcome.remote_task_id ?? null,
      outcome.remote_context_id ?? null,
    ],
  );
  await recordEvent(tx, eventPlace(row), 'message.input_required', {
    message_id: row.message_id,
    session_id: row.session_id,
    request_id: requestId,
    kind: kindOf(asked),
    source: 'agent',
    title,
  });
}
