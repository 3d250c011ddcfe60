import type { Usage } from '../../contracts/messages.js';
import { type Artifact, textOf } from '../../contracts/parts.js';
import type { Tx } from '../../db/pool.js';
import { schemaProblem } from '../input/form.js';
import { openAgentRequest } from '../input/input-requests.js';
import type { MessageRow } from '../read/rows.js';
import type { AnswerOrFailure, Produced } from './dispatches.js';
import { bounded } from './finish.js';
import type { Ending } from './transactions.js';

/** Usage of all dispatches of a message together; the newest names the model. */
function addUsage(before: Usage | null, more: Usage | undefined): Usage | null {
  if (!more) return before;
  const cost = Math.min(Number.MAX_VALUE, (before?.cost_usd ?? 0) + (more.cost_usd ?? 0));
  const model = more.model ?? before?.model;
  return {
    input_tokens: tokens(before?.input_tokens ?? 0, more.input_tokens),
    output_tokens: tokens(before?.output_tokens ?? 0, more.output_tokens),
    ...(model !== undefined && { model }),
    ...((before?.cost_usd !== undefined || more.cost_usd !== undefined) && { cost_usd: cost }),
  };
}

/** A sum that is still an exact number, however much agents claim to have used. */
function tokens(before: number, more: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, before + more);
}

/** Artifacts of earlier dispatches and of this one; a repeated id replaces. */
function mergeArtifacts(before: Artifact[], more: Artifact[]): Artifact[] {
  const replaced = new Set(more.map((artifact) => artifact.artifactId));
  return [...before.filter((artifact) => !replaced.has(artifact.artifactId)), ...more];
}

function outputOf(artifacts: Artifact[], outcome: AnswerOrFailure): string {
  const text = artifacts
    .map((artifact) => textOf(artifact.parts))
    .filter((part) => part !== '')
    .join('\n');
  return text || (outcome.status_message ? textOf(outcome.status_message.parts) : '');
}

/** What a dispatch adds to what earlier ones of its message brought. */
function outputAfter(before: Produced, outcome: AnswerOrFailure): NonNullable<Ending['output']> {
  const artifacts = mergeArtifacts(before.artifacts, outcome.artifacts ?? []);
  return {
    artifacts,
    usage: addUsage(before.usage, outcome.usage),
    assistant_output: outputOf(artifacts, outcome),
    status_message: outcome.status_message ?? null,
  };
}

/** How an outcome that asks nobody ends its message. */
export function endingOf(before: Produced, outcome: AnswerOrFailure): Ending {
  const output = outcome.artifacts && outputAfter(before, outcome);
  if (outcome.state === 'completed') return { state: 'completed', error: null, ...(output && { output }) };
  const text = outcome.status_message ? textOf(outcome.status_message.parts) : '';
  const error = outcome.error ?? { code: 'HANDLER_ERROR', message: text || 'The agent reported a failure.' };
  return { state: 'failed', error: bounded(error), ...(output && { output }) };
}

/** An answer that asks with a schema nobody could fill in is a failed one. */
export function withUsableForm(outcome: AnswerOrFailure): AnswerOrFailure {
  const schema = outcome.state === 'input-required' ? outcome.input_request?.schema : undefined;
  const problem = schema ? schemaProblem(schema) : null;
  if (problem === null) return outcome;
  return {
    ...outcome,
    state: 'failed',
    error: { code: 'HANDLER_ERROR', message: `The agent's form schema is not valid: ${problem}` },
  };
}

/** Writes what an agent that asks has brought so far, and opens its question. The caller holds the row's lock and has closed the dispatch. */
export async function applyQuestion(
  tx: Tx,
  row: MessageRow,
  outcome: AnswerOrFailure,
  expiryMs: number,
): Promise<void> {
  const { artifacts, usage, assistant_output } = outputAfter(row, outcome);
  await tx.query(
    'UPDATE messages SET artifacts = $3, usage = $4, assistant_output = $5 WHERE tenant_id = $1 AND message_id = $2',
    [row.tenant_id, row.message_id, JSON.stringify(artifacts), usage && JSON.stringify(usage), assistant_output],
  );
  await openAgentRequest(tx, row, outcome, expiryMs);
}
