/** Finds violations in what the database says of all messages after a soak. */
import { dispatchesOf } from '../harness/cluster/record.mjs';
import { expectedAnswer, startsMax } from './load.mjs';

/**
 * Violations of the guarantees of docs/durability.md.
 * @param rows of `readRecord`
 * @param {{ accepted: Set<string>, started: Map<string, number>, faults: import('../harness/cluster/losses.mjs').Faults,
 *   leaves: { instanceId: string, fromMs: number, toMs: number }[] }} observed message ids that callers saw accepted, starts of messages and of tool
 *   calls (whose ids have a slash) that agents counted, what was killed, and when agents were leaving
 */
export function judgeRecord(rows, { accepted, started, faults, leaves }) {
  const known = new Set(rows.map((row) => row.message_id));
  const missing = [...accepted].filter((id) => !known.has(id));
  const doubled = [...started].filter(([id, count]) => id.includes('/') && count > 1);
  const violations = [
    ...missing.map((id) => `${id} was accepted and is not in the database`),
    ...doubled.map(([id, count]) => `the tool call ${id} was started ${count} times`),
  ];
  for (const row of rows) {
    const { message_id: id, state, error_code: code } = row;
    const report = (violation) => violations.push(`${id} (${row.question}) ${violation}`);
    if (row.ends !== 1) report(`has ended ${row.ends} times`);
    const starts = started.get(id) ?? 0;
    if (starts > startsMax(row.question)) report(`was started ${starts} times by agents: ${dispatchesOf(row)}`);
    if (state === 'completed' && row.answer !== expectedAnswer(row.question))
      report(`has another answer: ${row.answer}`);
    const isAllowed = faults.allows(row) || (starts === 0 && crossedLeave(row, leaves));
    if (state === 'failed' && !isAllowed)
      report(`failed with ${code} (${row.error_message}) after ${starts} starts: ${dispatchesOf(row)}`);
    if (state !== 'completed' && state !== 'failed') report(`is ${state}`);
  }
  return violations;
}

/** Whether the last dispatch was sent to an agent that left: on a network that stands still the two cross, and the agent never sees the dispatch. */
function crossedLeave({ error_code, completed_at, dispatches }, leaves) {
  if (error_code !== 'AGENT_DISCONNECTED') return false;
  const { instance_id, sent_at } = dispatches.at(-1);
  const sentAtMs = new Date(sent_at).getTime();
  return leaves.some(
    ({ instanceId, fromMs, toMs }) =>
      instanceId === instance_id && fromMs <= completed_at.getTime() && sentAtMs <= toMs,
  );
}
