import type { Part } from '../../contracts/a2a/parts.js';
import { LIMITS } from '../../contracts/limits.js';
import type { Tx } from '../../db/pool.js';
import type { MessageRow } from '../../messages/read/rows.js';
import { outputText } from '../../messages/read/task.js';
import type { StepRow } from '../plan-rows.js';
import type { PlanError } from './next-moves.js';
import { referencesIn, withOutputs } from './templates.js';

/** The outputs that a step's message uses, by the ids of their steps; or why the message cannot be made. */
export type UsedOutputs = ReadonlyMap<string, string> | PlanError;

const OUTPUT = `
  SELECT m.artifacts, m.status_message FROM plan_steps s JOIN messages m ON m.tenant_id = s.tenant_id AND m.message_id = s.message_id
   WHERE s.tenant_id = $1 AND s.plan_id = $2 AND s.step_id = $3`;

const tooLarge = (size: string): PlanError => ({
  code: 'PAYLOAD_TOO_LARGE',
  message: `With the outputs of other steps the message has ${size} bytes; ${LIMITS.messagePartsBytes} are allowed.`,
});

/**
 * Reads the outputs that a step's message uses, one after the other, until they fill more than a message may have: many large outputs, or one
 * that is used often, take no more memory than that and one output.
 */
export async function readOutputs(tx: Tx, { tenant_id, plan_id, parts }: StepRow): Promise<UsedOutputs> {
  const outputs = new Map<string, string>();
  let filled = 0;
  for (const [stepId, times] of referencesIn(parts).uses) {
    const values = [tenant_id, plan_id, stepId];
    type Output = Pick<MessageRow, 'artifacts' | 'status_message'>;
    const [row] = await tx.query<Output>(OUTPUT, values, 'step_output');
    if (!row) return { code: 'NOT_FOUND', message: `The output of the step ${stepId} is not kept any more.` };
    const output = outputText(row);
    // A character has at least one byte.
    filled += output.length * times;
    if (filled > LIMITS.messagePartsBytes) return tooLarge(`more than ${LIMITS.messagePartsBytes}`);
    outputs.set(stepId, output);
  }
  return outputs;
}

/** The message of a step, with the outputs that it uses; or why it cannot be sent. */
export function messageOf({ parts: template }: StepRow, outputs: UsedOutputs): { parts: Part[] } | PlanError {
  if ('code' in outputs) return outputs;
  const parts = withOutputs(template, outputs);
  const bytes = Buffer.byteLength(JSON.stringify(parts));
  return bytes <= LIMITS.messagePartsBytes ? { parts } : tooLarge(String(bytes));
}
