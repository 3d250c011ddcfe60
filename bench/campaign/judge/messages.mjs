/** Compares what callers were told and what agents did with the record of the messages. */
import { dispatchesOf } from '../../harness/cluster/record.mjs';
import { expectedAnswer, expectedState, parseText, USAGE } from '../messages.mjs';

const TERMINAL = ['completed', 'failed', 'canceled'];
/** Of a dispatch with which the agent ended its turn. */
const TURNS = ['completed', 'input_required'];

/**
 * @param rows of `readRecord`
 * @param {import('../tenant.mjs').CampaignTenant[]} tenants
 * @param {import('./journal.mjs').Journal} journal
 * @param {import('../../harness/cluster/losses.mjs').Faults} faults
 * @param {Map<string, object>} erased messages
 * @returns violations
 */
export function judgeMessages(rows, tenants, journal, faults, erased) {
  const violations = [];
  const known = new Map(rows.map((row) => [row.message_id, row]));
  for (const { id: tenantId, accepted } of tenants) {
    for (const [id, { text, answers }] of accepted) {
      const row = known.get(id);
      const report = (violation) => violations.push(`${id} (${text}) ${violation}`);
      if (row?.tenant_id !== tenantId) report('was accepted and is not on the record of its tenant');
      else for (const one of answers) judgeAnswer(one, row, report);
    }
  }
  const acceptedIds = new Set(tenants.flatMap(({ accepted }) => [...accepted.keys()]));
  for (const row of rows) {
    const report = (violation) =>
      violations.push(`${row.message_id} (${row.question}, ${row.state}) ${violation}: ${dispatchesOf(row)}`);
    if (!acceptedIds.has(row.message_id)) report('is on the record, and no caller was told of it');
    judgeState(row, journal, faults, report);
    judgeWork(row, journal, report);
  }
  for (const { dispatch, message } of journal.orphans(new Map([...known, ...erased])))
    violations.push(`an agent did ${dispatch} of ${message}, which is not on the record`);
  return [...violations, ...repeated(rows)];
}

/** What a caller was told once of a final state stays true. */
function judgeAnswer({ state, answer }, row, report) {
  if (!TERMINAL.includes(state)) return;
  if (row.state !== state) report(`was told as ${state} and is ${row.state}`);
  else if (answer !== undefined && answer !== row.answer) report(`was told with the answer ${JSON.stringify(answer)}`);
}

function judgeState(row, journal, faults, report) {
  const { state, question } = row;
  if (row.ends !== (TERMINAL.includes(state) ? 1 : 0)) report(`has ${row.ends} events of its end`);
  if (state === 'completed' && row.answer !== expectedAnswer(question))
    report(`has the answer ${JSON.stringify(row.answer)}`);
  if (state === expectedState(question)) return;
  const toolFailures = journal.toolFailures.get(row.message_id);
  if (state === 'failed' && faults.allows(row, toolFailures)) return;
  if (state === 'failed' && !journal.started.has(row.message_id) && faults.crossedLeave(row)) return;
  const ofTools = toolFailures ? ` after its tool failed with ${toolFailures.map(({ code }) => code).join(', ')}` : '';
  report(`ended with ${row.error_code}${ofTools}, which nothing that was killed explains`);
}

/** Each dispatch is done by one agent once, and only what was sent; tools are called once for each, and pay once for each approval. */
function judgeWork(row, journal, report) {
  const { kind } = parseText(row.question);
  const started = journal.started.get(row.message_id) ?? new Map();
  for (const [id, count] of started) {
    if (count > 1) report(`${id} was started ${count} times`);
    const dispatch = row.dispatches.find(({ dispatch_id }) => dispatch_id === id);
    if (!dispatch) report(`an agent did ${id}, which is not on the record`);
    else if (dispatch.sent_at === null || dispatch.state === 'released')
      report(`an agent did ${id}, which was not sent`);
  }
  const turns = row.dispatches.filter(({ state }) => TURNS.includes(state));
  for (const { dispatch_id } of turns) if (!started.has(dispatch_id)) report(`no agent did ${dispatch_id}`);
  const questions = turns.filter(({ state }) => state === 'input_required').length;
  // A dispatch that is lost while a human is asked about its tool call is followed by another.
  if (kind !== 'pay' && started.size > questions + 1)
    report(`was started ${started.size} times for ${questions} questions`);
  const calls = journal.toolCalls.get(row.message_id) ?? 0;
  if (calls > 1) report(`its tool was called ${calls} times`);
  if (row.state === 'completed' && ['tool', 'pay'].includes(kind) && calls === 0) report('its tool was never called');
  const tokens = (row.usage?.input_tokens ?? 0) + (row.usage?.output_tokens ?? 0);
  if (tokens !== turns.length * (USAGE.inputTokens + USAGE.outputTokens)) report(`has ${tokens} tokens`);
}

/** A message that a caller repeated is one message. */
function repeated(rows) {
  const seen = new Set();
  return rows.flatMap(({ tenant_id, client_message_id }) => {
    const key = `${tenant_id}/${client_message_id}`;
    if (!seen.has(key)) return seen.add(key) && [];
    return [`${key} was accepted more than once`];
  });
}
