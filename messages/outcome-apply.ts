import type { Usage } from '../contracts/messages.js';
import { type Artifact, textOf } from '../contracts/parts.js';
import { recordEvent } from '../db/events.js';
import type { Tx } from '../db/pool.js';
import type { DispatchOutcome } from './dispatches.js';
import { eventPlace, finishFailed } from './finish.js';
import { schemaProblem } from './form.js';
import { openAgentRequest } from './input-requests.js';
import type { MessageRow } from './rows.js';

/** Usage of all dispatches of a message together; the newest names the model. */
function addUsage(before: Usage | null, more: Usage | undefined): Usage | null {
  if (!more) return before;
  const cost = (before?.cost_usd ?? 0) + (more.cost_usd ?? 0);
  const model = more.model ?? before?.model;
  return {
    input_tokens: (before?.input_tokens ?? 0) + more.input_tokens,
    output_tokens: (before?.output_tokens ?? 0) + more.output_tokens,
    ...(model !== undefined && { model }),
    ...((before?.cost_usd !== undefined || more.cost_usd !== undefined) && { cost_usd: cost }),
  };
}

/** Artifacts of earlier dispatches and of this one; a repeated id replaces. */
function mergeArtifacts(before: Artifact[], more: Artifact[]): Artifact[] {
  const replaced = new Set(more.map((artifact) => artifact.artifactId));
  return [...before.filter((artifact) => !replaced.has(artifact.artifactId)), ...more];
}

function outputOf(artifacts: Artifact[], outcome: DispatchOutcome): string {
  const text = artifacts
    .map((artifact) => textOf(artifact.parts))
    .filter((part) => part !== '')
    .join('\n');
  return text || (outcome.status_message ? textOf(outcome.status_message.parts) : '');
}

const OUTPUT = 'artifacts = $3, usage = $4, assistant_output = $5, status_message = $6';

function outputValues(row: MessageRow, outcome: DispatchOutcome): unknown[] {
  const artifacts = mergeArtifacts(row.artifacts, outcome.artifacts);
  const usage = addUsage(row.usage, outcome.usage);
  return [
    row.tenant_id,
    row.message_id,
    JSON.stringify(artifacts),
    usage && JSON.stringify(usage),
    outputOf(artifacts, outcome),
    outcome.status_message ? JSON.stringify(outcome.status_message) : null,
  ];
}

async function keepOutput(tx: Tx, row: MessageRow, outcome: DispatchOutcome): Promise<void> {
  await tx.query(`UPDATE messages SET ${OUTPUT} WHERE tenant_id = $1 AND message_id = $2`, outputValues(row, outcome));
}

async function finishCompleted(tx: Tx, row: MessageRow, outcome: DispatchOutcome): Promise<void> {
  const [done] = await tx.query<{ duration_ms: number }>(
    `UPDATE messages SET ${OUTPUT}, state = 'completed', completed_at = now(), updated_at = now(), holds_slot = false,
       resolution = NULL, unrouted_since = NULL
     WHERE tenant_id = $1 AND message_id = $2
     RETURNING (extract(epoch FROM now() - created_at) * 1000)::bigint AS duration_ms`,
    outputValues(row, outcome),
  );
  await recordEvent(tx, eventPlace(row), 'message.completed', {
    message_id: row.message_id,
    session_id: row.session_id,
    role: 'agent',
    duration_ms: Math.max(0, done?.duration_ms ?? 0),
  });
}

/** An answer that asks with a schema nobody could fill in is a failed one. */
export function withUsableForm(outcome: DispatchOutcome): DispatchOutcome {
  const schema = outcome.state === 'input-required' ? outcome.input_request?.schema : undefined;
  const problem = schema ? schemaProblem(schema) : null;
  if (problem === null) return outcome;
  return {
    ...outcome,
    state: 'failed',
    error: { code: 'HANDLER_ERROR', message: `The agent's form schema is not valid: ${problem}` },
  };
}

/** Writes what an agent answered into its message. The caller holds the row's lock and has closed the dispatch. */
export async function applyOutcome(tx: Tx, row: MessageRow, outcome: DispatchOutcome, expiryMs: number): Promise<void> {
  if (outcome.state === 'completed') return finishCompleted(tx, row, outcome);
  await keepOutput(tx, row, outcome);
  if (outcome.state === 'input-required') return openAgentRequest(tx, row, outcome, expiryMs);
  const text = outcome.status_message ? textOf(outcome.status_message.parts) : '';
  return finishFailed(
    tx,
    row,
    outcome.error ?? { code: 'HANDLER_ERROR', message: text || 'The agent reported a failure.' },
  );
}
