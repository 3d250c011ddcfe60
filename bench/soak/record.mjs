/** Finds violations in what the database says of all messages after a soak. */
import { dispatchesOf } from '../harness/cluster/record.mjs';
import { expectedAnswer } from './load.mjs';

/**
 * Violations of the guarantees of docs/durability.md.
 * @param rows of `readRecord`
 * @param {{ accepted: Set<string>, started: Map<string, number>, killed: string[] }} observed message ids that callers saw accepted, starts that agents
 *   counted, mesh ids of killed nodes
 */
export function judgeRecord(rows, { accepted, started, killed }) {
  const known = new Set(rows.map((row) => row.message_id));
  const missing = [...accepted].filter((id) => !known.has(id));
  const violations = missing.map((id) => `${id} was accepted and is not in the database`);
  for (const row of rows) {
    const { message_id: id, state, error_code: code } = row;
    const report = (violation) => violations.push(`${id} (${row.question}) ${violation}`);
    if (row.ends !== 1) report(`has ended ${row.ends} times`);
    if ((started.get(id) ?? 0) > 1) report(`was started ${started.get(id)} times by agents`);
    if (state === 'completed' && row.answer !== expectedAnswer(row.question)) report('has another answer');
    if (state === 'failed' && !isAllowedLoss(row, killed)) report(`failed with ${code}: ${dispatchesOf(row)}`);
    if (state !== 'completed' && state !== 'failed') report(`is ${state}`);
  }
  return violations;
}

/** Only a message in flight on a killed node may be lost. */
function isAllowedLoss({ error_code, dispatches }, killed) {
  return error_code === 'AGENT_DISCONNECTED' && killed.includes(dispatches.at(-1)?.mesh_id);
}
