import { decodeJwt } from 'jose';
import { expect, test } from 'vitest';
import { GetTokenResponse } from '../../contracts/api/auth.js';
import { MessagesGetResponse, MessagesPendingResponse } from '../../contracts/api/messages.js';
import { GetApprovalsResponse } from '../../contracts/api/policies/approvals.js';
import {
  GetReceiptResponse,
  RequestGetByIdResponse,
  RequestsGetResponse,
} from '../../contracts/api/policies/requests.js';
import { SessionInitResponse, SessionsGetResponse } from '../../contracts/api/sessions.js';
import { AUDIT_OPERATIONS } from '../../contracts/api/tenants/audit.js';
import { LIMITS } from '../../contracts/limits.js';
import { insertAgent } from '../setup/core.js';
import { until } from '../setup/until.js';
import { ASKS, answerMessage, joinOnRecord } from './moving.js';
import { serveApi } from './served-api.js';

const api = await serveApi({ sequencer: true, clocks: { credentialCheckMs: 100 } });
await joinOnRecord(api, 'worker-1');
await insertAgent(api.database, { tenant_id: api.tenantId, instance_id: 'painter-1', agent_type: 'painter' });
const service = await api.credentialOf(api.tenantId, ['admin']);

/** A client whose token is limited. */
async function limited(limits: object) {
  return api.clientWith(await api.tokenAs({ ...service, ...limits }));
}
/** What asking for a token comes to. */
async function asking(wish: object, credential = service): Promise<string> {
  const body = JSON.stringify({ ...credential, ...wish });
  const { status } = await api.client.raw('/auth/get_token', body, { 'content-type': 'application/json' });
  return String(status);
}
const [ann, bob] = [await limited({ user_id: 'ann' }), await limited({ user_id: 'bob' })];
const toWorker = { blocking: false, metadata: { agent_type: 'worker' } };
type Client = typeof ann;
const refused = async (client: Client, options: object) => {
  const { status, error } = await client.rpc('hi', { ...toWorker, ...options });
  return error ? `${error.code} ${(error.data as { code?: string })?.code}` : String(status);
};
const idsOf = async (client: Client, filter: object = {}) =>
  (await client.ok('/messages/get', filter, MessagesGetResponse)).messages.map(({ message_id }) => message_id);
const asked = async (client: Client) => {
  const task = await client.send('hi', toWorker);
  await answerMessage(api, task.id, ASKS);
  return task;
};

test('a token is narrowed and never widened', async () => {
  const limits = { user_id: 'ann', session_id: 's-1', agent_types: ['worker'] };
  const body = JSON.stringify({ ...service, ...limits });
  const answer = await api.client.raw('/auth/get_token', body, { 'content-type': 'application/json' });
  const { token, ...rest } = GetTokenResponse.parse(answer.body);
  expect(rest).toMatchObject({ expires_in: 3_600, scopes: ['read'] });
  const { agent_types, ...claims } = limits;
  expect(decodeJwt(token)).toMatchObject({ ...claims, agent_types_allowed: agent_types, scopes: ['read'] });
  expect(await asking({ user_id: 'ann', scopes: ['admin'] })).toBe('400');
  expect(await asking({ session_id: 's-1', scopes: ['read', 'full'] })).toBe('400');
  expect(await asking({ user_id: 'ann', expires_in: 86_401 })).toBe('400');
  expect(await asking({ user_id: 'ann', expires_in: 86_400 })).toBe('200');
  expect(await asking({ user_id: 'ann', agent_type: 'worker' })).toBe('400');
  expect(await asking({ user_id: 'x'.repeat(257) })).toBe('400');
  expect(await asking({ scopes: ['full'] })).toBe('403');
  // A credential of agents stands for no user.
  expect(await asking({ user_id: 'ann' }, await api.credentialOf(api.tenantId, ['read'], ['worker']))).toBe('403');
});

test('it sends as its user, and sees, cancels and answers what is that user’s', async () => {
  const task = await asked(ann);
  const other = await asked(bob);
  expect(await ann.message(task.id)).toMatchObject({ user_id: 'ann', sent_by: { type: 'credential' } });
  for (const ids of [await idsOf(ann), await idsOf(ann, { state: 'input-required' })]) {
    expect(ids).toContain(task.id);
    expect(ids).not.toContain(other.id);
  }
  expect(await idsOf(ann, { user_id: 'bob' })).toEqual([]);
  const pending = await ann.ok('/messages/pending', {}, MessagesPendingResponse);
  expect(pending.messages.map(({ user_id }) => user_id)).toEqual(['ann']);
  const { requests } = await ann.ok('/requests/get', {}, RequestsGetResponse);
  expect(requests.map(({ user_id, may_answer }) => [user_id, may_answer])).toEqual([['ann', true]]);
  const { sessions } = await ann.ok('/sessions/get', {}, SessionsGetResponse);
  expect(new Set(sessions.map(({ user_id }) => user_id))).toEqual(new Set(['ann']));
  expect(await ann.failure('/messages/get_by_id', { message_id: other.id })).toBe('404 NOT_FOUND');
  expect(await ann.failure(`/messages/${other.id}/resolve`, { resolution: 'confirmed' })).toBe('404 NOT_FOUND');
  expect(await refused(ann, { taskId: other.id })).toBe('-32001 NOT_FOUND');
  expect(await ann.failure('/sessions/interrupt', { ids: [task.contextId, other.contextId] })).toBe('200');
  expect((await bob.message(other.id)).state).toBe('input-required');
  const again = await asked(ann);
  expect(await ann.failure(`/messages/${again.id}/resolve`, { resolution: 'confirmed' })).toBe('200');
  const third = await asked(ann);
  await ann.send('yes', { taskId: third.id, blocking: false });
  expect((await ann.message(third.id)).state).toBe('working');
  expect(await ann.failure('/messages/cancel', { message_id: third.id })).toBe('200');
});

test('what its user decides is recorded as that person’s, and never under the name of a credential', async () => {
  const { id, contextId } = await asked(ann);
  const { requests } = await ann.ok('/requests/get', { session_id: contextId }, RequestsGetResponse);
  const request_id = requests[0]?.request_id ?? '';
  expect(await ann.failure(`/messages/${id}/resolve`, { resolution: 'confirmed' })).toBe('200');
  expect(await ann.failure(`/messages/${id}/resolve`, { resolution: 'confirmed' })).toBe('409 ALREADY_RESOLVED');
  const principal = { type: 'person', id: 'ann' };
  const { request } = await api.client.ok('/requests/get_by_id', { request_id }, RequestGetByIdResponse);
  expect(request.decided?.principals).toEqual([principal]);
  const { approvals } = await api.client.ok('/messages/get_approvals', { message_id: id }, GetApprovalsResponse);
  expect(approvals.map((approval) => approval.principal)).toEqual([principal]);
  const { receipt } = await api.client.ok('/requests/get_receipt', { request_id }, GetReceiptResponse);
  expect(decodeJwt(receipt).principals).toEqual([{ ...principal, method: 'access_token' }]);
  const decided = await api.client.ok(
    '/audit/get',
    { principal: 'ann', target: request_id },
    AUDIT_OPERATIONS.getAudit.response,
  );
  expect(decided.entries.map((entry) => entry.principal)).toEqual([principal]);

  const masked = await limited({ user_id: service.client_id });
  const other = await asked(masked);
  expect(await masked.failure(`/messages/${other.id}/resolve`, { resolution: 'declined' })).toBe('200');
  const { entries } = await api.client.ok(
    '/audit/get',
    { principal: service.client_id },
    AUDIT_OPERATIONS.getAudit.response,
  );
  expect(entries.map((entry) => entry.principal)).toEqual([{ type: 'person', id: service.client_id }]);
});

test('it sends for no other user, and in no session that is not its user’s', async () => {
  const nobodys = await api.client.send('hi', toWorker);
  const { contextId } = await bob.send('hi', toWorker);
  expect(await refused(ann, { metadata: { agent_type: 'worker', user_id: 'bob' } })).toBe('403');
  expect(await refused(ann, { contextId })).toBe('-32602 NOT_FOUND');
  expect(await refused(ann, { contextId: nobodys.contextId })).toBe('-32602 NOT_FOUND');
  // Whoever may name a context could open the one that another's product is about to use.
  expect(await refused(bob, { contextId: 'bobs-room' })).toBe('403');
  await api.client.send('hi', {
    ...toWorker,
    metadata: { agent_type: 'worker', user_id: 'bob' },
    contextId: 'bobs-room',
  });
  expect(await refused(ann, { contextId: 'bobs-room' })).toBe('-32602 NOT_FOUND');
  expect(await refused(bob, { contextId: 'bobs-room' })).toBe('200');
  expect(await ann.failure('/sessions/init', { user_id: 'bob' })).toBe('403 forbidden');
  expect(await ann.failure('/sessions/init', { agent_type: 'worker', reserve: true })).toBe('403 forbidden');
  expect(await ann.failure('/sessions/init', { idle_timeout_seconds: 0 })).toBe('403 forbidden');
  const { session } = await ann.ok('/sessions/init', {}, SessionInitResponse);
  expect(session.user_id).toBe('ann');
  expect(await ann.failure('/sessions/close', { session_id: contextId })).toBe('404 NOT_FOUND');
  // The same messageId of another user's is another message.
  const once = { ...toWorker, messageId: 'once' };
  expect((await ann.send('hi', once)).id).not.toBe((await bob.send('hi', once)).id);
});

test('the names of credentials are not for users, and a user has none whatever its id', async () => {
  const decidedOf = async (client: typeof ann, session_id: string) =>
    (await client.ok('/requests/get', { state: 'decided', session_id }, RequestsGetResponse)).requests[0]?.decided;
  const { id, contextId } = await asked(ann);
  expect(await api.client.failure(`/messages/${id}/resolve`, { resolution: 'confirmed' })).toBe('200');
  const [principal] = (await decidedOf(api.client, contextId))?.principals ?? [];
  expect(principal).toEqual({ type: 'credential', id: expect.any(String), name: expect.any(String) });
  expect((await decidedOf(ann, contextId))?.principals).toEqual([{ type: 'credential', id: principal?.id }]);

  const twin = await limited({ user_id: service.client_id });
  const own = await asked(twin);
  expect(await twin.failure(`/messages/${own.id}/resolve`, { resolution: 'confirmed' })).toBe('200');
  expect((await decidedOf(api.client, own.contextId))?.principals).toEqual([{ type: 'person', id: service.client_id }]);
});

test('it sets no push configuration, and is no approver', async () => {
  const pushNotificationConfig = { url: 'https://example.com/hook' };
  expect(await refused(ann, { pushNotificationConfig })).toBe('403');
  const { id } = await asked(ann);
  expect(await refused(ann, { taskId: id, pushNotificationConfig })).toBe('403');
  // Named as an approver is the credential, which is not its user.
  await api.database.query('UPDATE input_requests SET approvers = $2 WHERE message_id = $1', [id, [service.client_id]]);
  expect(await ann.failure(`/messages/${id}/resolve`, { resolution: 'confirmed' })).toBe('403 forbidden');
  expect(await refused(ann, { taskId: id })).toBe('403');
  await api.database.query("UPDATE input_requests SET approvers = '{}', source = 'policy' WHERE message_id = $1", [id]);
  expect(await ann.failure(`/messages/${id}/resolve`, { resolution: 'confirmed' })).toBe('403 forbidden');
  const { requests } = await ann.ok('/requests/get', {}, RequestsGetResponse);
  expect(requests.map(({ may_answer }) => may_answer)).toEqual(requests.map(() => false));
});

test('one for a session stays in it, and one for agent types stays with these', async () => {
  const { session_id } = await ann.ok('/sessions/init', {}, SessionInitResponse);
  const inSession = await limited({ user_id: 'ann', session_id });
  const before = await idsOf(inSession);
  const task = await inSession.send('hi', toWorker);
  expect([task.contextId, before]).toEqual([session_id, []]);
  expect(await idsOf(inSession)).toEqual([task.id]);
  expect(await refused(inSession, { contextId: 'another' })).toBe('-32602 NOT_FOUND');
  expect(await inSession.failure('/sessions/init', {})).toBe('403 forbidden');
  expect(await (await limited({ user_id: 'bob', session_id })).failure('/sessions/get_by_id', { session_id })).toBe(
    '404 NOT_FOUND',
  );

  // A session that the token names is its own from the beginning.
  const inNamed = await limited({ session_id: 'room-of-the-token' });
  expect((await inNamed.send('hi', toWorker)).contextId).toBe('room-of-the-token');
  expect(await refused(inNamed, { metadata: { agent_type: 'worker', userId: 'bob' } })).toBe('403');

  const painters = await limited({ agent_types: ['painter'] });
  expect(await refused(painters, { metadata: { agent_type: 'painter', user_id: 'bob' } })).toBe('403');
  expect(await painters.failure('/sessions/init', { user_id: 'bob' })).toBe('403 forbidden');
  const painted = await painters.send('hi', { blocking: false });
  expect(await painters.message(painted.id)).toMatchObject({ agent_type: 'painter' });
  expect(await idsOf(painters)).toEqual([painted.id]);
  expect(await refused(painters, {})).toBe('403');
  expect(await refused(painters, { metadata: { instance_id: 'worker-1' } })).toBe('403');
  expect(await refused(painters, { metadata: { target_agent: 'worker' } })).toBe('403');
  expect(await refused(painters, { metadata: { target_agent: 'worker-1' } })).toBe('403');
  expect(await refused(painters, { metadata: {}, contextId: task.contextId })).toBe('-32602 NOT_FOUND');
  expect(await painters.failure('/messages/get_by_id', { message_id: task.id })).toBe('404 NOT_FOUND');
  expect(await painters.failure('/sessions/init', { agent_type: 'worker' })).toBe('403 forbidden');
  const both = await limited({ agent_types: ['painter', 'worker'] });
  expect(await refused(both, { metadata: {} })).toBe('-32602 TARGET_REQUIRED');
  // Its own content under the messageId of another type's message does not show that one.
  const { messageId } = { messageId: 'of-a-worker' };
  const admin = await limited({});
  await admin.send('hi', { blocking: false, messageId, metadata: { agent_type: 'worker' } });
  expect(await refused(painters, { metadata: { agent_type: 'worker' }, messageId })).toBe('403');
});

/** The events of a stream, as they come. */
async function following(client: Client, filters: object = {}) {
  const response = await fetch(new URL('/telemetry/stream_events', api.baseUrl), {
    method: 'POST',
    headers: await client.headers(),
    body: JSON.stringify(filters),
  });
  const seen = { status: response.status, text: '', ended: false };
  void (async () => {
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) seen.text += chunk;
    seen.ended = true;
  })().catch(() => undefined);
  return seen;
}

test('its stream of events has those of its user only, and ends when the user is revoked', async () => {
  const eve = await limited({ user_id: 'eve' });
  const stream = await following(eve);
  const ofBob = await bob.send('hi', toWorker);
  const nobodys = await api.client.send('hi', toWorker);
  const own = await eve.send('hi', toWorker);
  await until(() => stream.text.includes(own.contextId) && stream.text.includes('message.received'));
  expect(stream.text).toContain('session.created');
  for (const { id, contextId } of [ofBob, nobodys]) {
    expect(stream.text).not.toContain(id);
    expect(stream.text).not.toContain(contextId);
  }
  const narrow = await following(eve, { session_id: ofBob.contextId });
  const renewing = await limited({ user_id: 'eve' }); // its tokens count together
  const more = await Promise.all(
    Array.from({ length: LIMITS.eventStreamsPerLimitedToken - 2 }, () => following(renewing)),
  );
  expect([(await following(eve)).status, (await following(renewing)).status]).toEqual([429, 429]);
  const waiting = eve.rpc('hi', { metadata: toWorker.metadata });
  await until(async () => (await idsOf(eve)).length === 2);
  const open = await fetch(new URL('/send', api.baseUrl), {
    method: 'POST',
    headers: { ...(await eve.headers()), accept: 'text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/resubscribe', params: { id: own.id } }),
  });
  const answer = open.text();
  expect(await (await limited({ user_id: 'ann' })).failure('/auth/revoke_user', { user_id: 'eve' })).toBe(
    '403 forbidden',
  );
  expect(await (await limited({})).failure('/auth/revoke_user', { user_id: 'eve' })).toBe('403 forbidden');
  expect(await api.client.failure('/auth/revoke_user', { user_id: 'eve' })).toBe('200');
  await until(() => [stream, narrow, ...more].every(({ ended }) => ended));
  expect((await waiting).error?.data).toMatchObject({ code: 'unauthorized' });
  expect(stream.text).toContain('stream.closed');
  expect(narrow.text).not.toContain(ofBob.contextId);
  expect(await answer).toContain('unauthorized');
  await until(async () => (await eve.failure('/messages/get', {})) === '401 unauthorized');
  // The user may get another one, and others keep theirs.
  const renewed = await limited({ user_id: 'eve' });
  expect(await idsOf(renewed)).toContain(own.id);
  expect(await idsOf(bob)).toContain(ofBob.id);
  expect(await api.client.failure('/auth/revoke_user', { user_id: 'eve' })).toBe('200');
  await until(async () => (await renewed.failure('/messages/get', {})) === '401 unauthorized');
});
