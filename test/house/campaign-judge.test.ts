import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const load = async (path: string) => (await import(pathToFileURL(join(root, 'bench', path)).href)) as Campaign;

/** What is loaded of the campaign, as far as it is used here. */
interface Campaign {
  judgeFlatness(samples: object[], options: object): { violations: string[] };
  judgeMessages(rows: Row[], tenants: object[], journal: object, faults: object, erased: object): string[];
  judgeEvents(...observed: [object, tenants: object[], object, record: object[], erased: object]): Promise<string[]>;
  Journal: new () => Work & object;
  Faults: new () => object;
}
const { judgeFlatness } = await load('harness/cluster/flatness.mjs');
const { judgeMessages } = await load('campaign/judge/messages.mjs');
const { judgeEvents } = await load('campaign/judge/events.mjs');
const { Journal } = await load('campaign/judge/journal.mjs');
const { Faults } = await load('harness/cluster/losses.mjs');

/** What agents wrote down. */
interface Work {
  started: Map<string, Map<string, number>>;
  toolCalls: Map<string, number>;
}
type Row = ReturnType<typeof observed>['rows'][number];

/** A quick message that was told, done and recorded once. */
function observed() {
  const at = new Date(1_000);
  const journal = new Journal();
  journal.started.set('msg_1', new Map([['dsp_1', 1]]));
  const dispatch = { dispatch_id: 'dsp_1', instance_id: 'a', mesh_id: 'mesh_1', state: 'completed', sent_at: at };
  const row = {
    ...{ tenant_id: 'ten_1', message_id: 'msg_1', client_message_id: 'sent-1', question: 'quick 0 hello' },
    ...{ state: 'completed', error_code: null as string | null, answer: 'hello', ends: 1 },
    ...{ usage: { input_tokens: 7, output_tokens: 3 }, created_at: at, completed_at: at, dispatches: [dispatch] },
  };
  const answers = [{ state: 'completed', answer: 'hello' }];
  const tenant = { id: 'ten_1', accepted: new Map([['msg_1', { text: row.question, answers }]]) };
  return { rows: [row], tenant, journal, answers };
}
type Observed = ReturnType<typeof observed>;

test.each<[string, (seen: Observed) => unknown, string | null]>([
  ['nothing', () => undefined, null],
  ['an acknowledged message is lost', ({ rows }) => rows.pop(), 'was accepted and is not on the record'],
  ['a message is there twice', ({ rows: [row], rows }) => rows.push({ ...(row as Row) }), 'accepted more than once'],
  ['nobody was told of a message', ({ tenant }) => tenant.accepted.clear(), 'no caller was told of it'],
  ['it ends twice', ({ rows: [row] }) => Object.assign(row as Row, { ends: 2 }), 'has 2 events of its end'],
  [
    'its caller was told otherwise',
    ({ answers }) => answers.push({ state: 'failed', answer: '' }),
    'was told as failed',
  ],
  ['its answer is cut', ({ rows: [row] }) => Object.assign(row as Row, { answer: 'hel' }), 'has the answer "hel"'],
  ['an agent does it twice', ({ journal }) => journal.started.set('msg_1', new Map([['dsp_1', 2]])), 'started 2 times'],
  ['an agent does too much', ({ journal }) => journal.started.get('msg_1')?.set('dsp_2', 1), 'did dsp_2, which is'],
  ['nobody does it', ({ journal }) => journal.started.clear(), 'no agent did dsp_1'],
  ['a tool is called twice', ({ journal }) => journal.toolCalls.set('msg_1', 2), 'tool was called 2 times'],
  ['tokens are lost', ({ rows: [row] }) => Object.assign((row as Row).usage, { input_tokens: 0 }), 'has 3 tokens'],
  [
    'it fails without a reason',
    ({ rows: [row] }) => Object.assign(row as Row, { state: 'failed', error_code: 'HANDLER_ERROR' }),
    'ended with HANDLER_ERROR, which nothing that was killed explains',
  ],
])('of a campaign in which this goes wrong: %s', (_what, goWrong, violation) => {
  const seen = observed();
  goWrong(seen);
  const violations = judgeMessages(seen.rows, [seen.tenant], seen.journal, new Faults(), new Map());
  if (violation === null) expect(violations).toEqual([]);
  else expect(violations.join('\n')).toContain(violation);
});

test.each<[string, number[], boolean]>([
  ['flat', Array.from({ length: 60 }, () => 100), true],
  ['that grows at first, and not after', Array.from({ length: 60 }, (_, at) => Math.min(100, at * 20)), true],
  ['that grows to the end', Array.from({ length: 60 }, (_, at) => 100 + at * 2), false],
])('memory %s is judged so', (_what, values, isFlat) => {
  const { violations } = judgeFlatness(
    values.map((value) => ({ value })),
    { minutes: 30 },
  );
  expect(violations.length === 0).toBe(isFlat);
});

/** Tables whose rows have a state that says nothing of work. */
const NO_WORK = {
  agents: 'whether an agent can be reached',
};

test('the rest of a campaign is judged for every table whose rows have a state', () => {
  const tables = [...read('db/schema.sql').matchAll(/^CREATE TABLE (\w+) \(\n([^;]*?)^\)/gm)];
  const withState = tables
    .filter(([, , columns = '']) => /^ {2}"?(state|status)"? /m.test(columns))
    .map(([, name]) => name);
  expect(withState).toContain('messages');
  const judged = [...read('bench/campaign/judge/rest.mjs').matchAll(/\b(?:FROM|JOIN) (\w+)/g)].map(([, name]) => name);
  expect(withState.filter((name) => !judged.includes(name))).toEqual(Object.keys(NO_WORK));
});

test.each([
  ['that comes while the record is read is no violation', ['evt_1'], []],
  ['that is not on it is', ['evt_0', 'evt_1'], ['ten_1: the stream brought evt_0, which is not on the record']],
])('an event %s', async (_what, ids, violations) => {
  const follower = { ids: [...ids], openedAtMs: 0 };
  const event = { event_id: 'evt_1', event_type: 'session.expired', occurred_at: new Date(1_000), request_id: '' };
  const database = {
    query: async () => {
      follower.ids.push('evt_2');
      return { rows: [event] };
    },
  };
  const tenant = { id: 'ten_1', follower, accepted: new Map() };
  const receiver = { alerts: new Map(), pushes: new Map() };
  const erased = { messages: new Map(), eventIds: new Set() };
  expect(await judgeEvents(database, [tenant], receiver, [], erased)).toEqual(violations);
});
