import { expect, test } from 'vitest';
import { ASKS, answerMessage } from '../../api/moving.js';
import { serveApi } from '../../api/served-api.js';
import { approvalsFixture } from './approvals-fixture.js';

const api = await serveApi();
const { approvalsOf, held, sent, person, outcome, events, step } = await approvalsFixture(api);
const HOUR_MS = 3_600_000;
/** The numbers of the events of a type: none for the first, 1 for the first reminder. */
const numbers = async (id: string, type: string) => (await events(id, type)).map(({ payload }) => payload.reminder);

test('a request is asked about again by the same events, each time with its number, until it is decided', async () => {
  const id = await held({ timeout_seconds: 86_400, reminder_seconds: 3_600 });
  expect(await step(id)).toMatchObject({ kind: 'person', wait_ms: expect.closeTo(HOUR_MS, -5) });
  expect(await step(id, HOUR_MS / 2)).toMatchObject({ wait_ms: expect.closeTo(HOUR_MS / 2, -5) });
  expect(await step(id, HOUR_MS + 1)).toMatchObject({ kind: 'person', wait_ms: HOUR_MS });
  expect(await step(id, HOUR_MS + 1_000)).toMatchObject({ kind: 'person', wait_ms: expect.closeTo(HOUR_MS, -5) });
  expect(await step(id, 5 * HOUR_MS)).toMatchObject({ kind: 'person' });
  expect(await numbers(id, 'message.input_required')).toEqual([undefined, 1, 2]);
  expect(await numbers(id, 'policy.approval_required')).toEqual([undefined, 1, 2]);
  expect(await outcome(api.client, id, { resolution: 'approved' })).toBe('200 working');
  expect((await step(id, 9 * HOUR_MS))?.kind).toBe('result');
  expect(await numbers(id, 'message.input_required')).toEqual([undefined, 1, 2]);
});

test('reminders after the first are a minute apart at least, and at most a thousand', async () => {
  const id = await held({ timeout_seconds: 600, reminder_seconds: 1 });
  await step(id, 1_001);
  expect(await step(id, 1_002)).toMatchObject({ kind: 'person', wait_ms: expect.closeTo(60_000, -4) });
  expect(await numbers(id, 'message.input_required')).toEqual([undefined, 1]);
  const long = await held({ timeout_seconds: 30 * 86_400, reminder_seconds: 60 });
  await step(long, 60_001);
  expect(await step(long, 60_002)).toMatchObject({ kind: 'person', wait_ms: expect.closeTo(2_592_000, -5) });
});

test.each([
  ['no reminders', { timeout_seconds: 600 }, null],
  ['a short time', { reminder_seconds: 1, timeout_seconds: 600 }, 60_000],
  ['a long time', { reminder_seconds: 60, timeout_seconds: 2_592_000 }, 2_592_000],
  ['what is asked for', { reminder_seconds: 3_600, timeout_seconds: 2_592_000 }, 3_600_000],
])('the next reminder of a request, about a message or a plan: %s', async (_what, terms, nextMs) => {
  const { reminder_seconds = null, timeout_seconds } = { reminder_seconds: null, ...terms };
  const next = `SELECT (extract(epoch FROM next_reminder($1, $2 * interval '1 s')) * 1000)::float8`;
  expect(await api.database.value(next, [reminder_seconds, timeout_seconds])).toBe(nextMs);
});

test.each([
  ['the first reminder', { reminder_seconds: 600 }, 600_000],
  ['half of the time without reminders', {}, HOUR_MS / 2],
])('who it escalates to may decide from %s on', async (_, terms, afterMs) => {
  const { id: bossId, client: boss } = await person('read');
  const id = await held({ timeout_seconds: 3_600, escalate_to: [bossId], ...terms });
  await step(id, afterMs / 2);
  expect(await outcome(boss, id, { resolution: 'approved' })).toBe('403 forbidden');
  await step(id, afterMs + 1);
  await step(id, afterMs + 2);
  expect((await api.client.message(id)).input_request?.approvers).toEqual([bossId]);
  expect(await outcome(boss, id, { resolution: 'approved' })).toBe('200 working');
});

test('a request that nobody decides is refused when its time ends, and the trail says by what', async () => {
  const id = await held({ timeout_seconds: 3_600 });
  expect(await step(id, HOUR_MS + 1)).toMatchObject({
    kind: 'done',
    state: 'failed',
    error: { code: 'APPROVAL_EXPIRED' },
  });
  expect(await approvalsOf({ message_id: id })).toMatchObject([
    { resolution: 'expired', principal: { type: 'system', id: 'expiry' } },
  ]);
});

test('a question of an agent that nobody answers fails its message after the time that the platform gives', async () => {
  const id = await sent();
  await answerMessage(api, id, ASKS);
  expect(await step(id, api.core.limits.inputExpiryMs - 60_000)).toMatchObject({ kind: 'person' });
  const error = { code: 'APPROVAL_EXPIRED' };
  expect(await step(id, api.core.limits.inputExpiryMs + 1)).toMatchObject({ kind: 'done', state: 'failed', error });
  expect(await outcome(api.client, id, { resolution: 'confirmed' })).toMatch(/^4(09|10) /);
});

test('an operator reads what is awaited, from whom, since when, until when and how to decide', async () => {
  const id = await held({ quorum: 2, approvers: ['cred_boss'] });
  const waiting = await step(id);
  if (waiting?.kind !== 'person') throw new Error('it does not wait');
  const { input_request } = await api.client.message(id);
  for (const text of [
    `asked by the policy \`${input_request?.policy_id}\``,
    '`cred_boss`',
    'Approvals: 0 of 2',
    `Since ${input_request?.requested_at}, until ${input_request?.expires_at}`,
    `POST /messages/${id}/resolve`,
    `${input_request?.request_id}`,
  ])
    expect(waiting.details).toContain(text);
  expect(waiting.details).not.toContain('People look at these.');
});
