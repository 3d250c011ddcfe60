import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import type { Operation } from '../../contracts/api/operation.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import type { Scope } from '../../contracts/primitives.js';
import { textMessage } from '../setup/core.js';
import type { Answer } from '../setup/platform/api-client.js';
import { ASKS, answerMessage, COMPLETED, joinOnRecord } from './moving.js';
import { serveApi } from './served-api.js';

type Name = keyof typeof OPERATIONS;
/** What a call comes to: `empty` is a list without anything in it, `missing` a 404 or A2A's TASK_NOT_FOUND. */
type Outcome = 'allowed' | 'empty' | 'missing' | 'forbidden' | 'unauthorized';

const api = await serveApi();
await joinOnRecord(api, 'worker-1');
const elsewhere = await api.otherTenant();
const tokens: Record<string, string | null> = {};
for (const scope of ['read', 'admin', 'full'] as const) {
  tokens[scope] = await api.tokenOf([scope]);
  tokens[`own ${scope}`] = await api.tokenOf([scope], 'worker');
  tokens[`foreign ${scope}`] = await api.tokenOf([scope], 'painter');
}
tokens['other tenant'] = await api.tokenOf(['full'], undefined, elsewhere);
const limited = async (limits: object) =>
  api.tokenAs({ ...(await api.credentialOf(api.tenantId, ['full'])), ...limits });
tokens.user = await limited({ user_id: 'ann' });
tokens.session = await limited({ session_id: 'a-room' });
tokens.types = await limited({ agent_types: ['painter', 'plumber'] });
tokens.none = null;
/** A tenant has room for so many messages in flight only. */
afterEach(async () => {
  await api.database.query("UPDATE messages SET state = 'canceled'");
  await api.database.query('DELETE FROM running_messages');
});

const params = (text = 'hi', change: object = {}) => ({
  message: textMessage(text, change),
  metadata: { agent_type: 'worker' },
  configuration: { blocking: false },
});
const rpc = (method: string, given: object) => ({ jsonrpc: '2.0', id: 1, method, params: given });

/** A message that waits for a human, asked by a worker; sent by nobody's agent. */
async function asked(): Promise<{ id: string; session_id: string }> {
  const task = await api.client.send('hi', { metadata: { agent_type: 'worker' }, blocking: false });
  await answerMessage(api, task.id, ASKS);
  return { id: task.id, session_id: task.contextId };
}

function postAs(token: string, path: string, body: object): Promise<Answer> {
  return api.clientWith(token).post(path, body);
}

let names = 0;
async function registered(): Promise<{ instance_id: string }> {
  const instance_id = `worker-made-${++names}`;
  const answer = await api.client.post('/agents/register', { instance_id, agent_type: 'worker' });
  expect(answer.status).toBe(200);
  return { instance_id };
}

const alert = {
  name: 'x',
  condition: { event: 'agent.registered' },
  notifications: [{ type: 'webhook', config: { url: 'https://example.com/hook' } }],
};
async function alertRule(notifications: object[] = alert.notifications): Promise<{ rule_id: string }> {
  const { body } = await api.client.post('/policies/new_alert', { ...alert, notifications });
  return { rule_id: (body as { rule_id: string }).rule_id };
}
async function policy(): Promise<{ policy_id: string }> {
  const { body } = await api.client.post('/policies/create_policy', { scope: 'plan', name: 'x', decision: 'allow' });
  const { policy_id } = (body as { policy: { policy_id: string } }).policy;
  return { policy_id };
}
/** On the record, since there is no relay. */
async function failedDelivery(): Promise<{ delivery_id: string }> {
  const { rule_id } = await alertRule();
  const delivery_id = `dlv_${randomUUID()}`;
  await api.database.query(
    `INSERT INTO deliveries (tenant_id, delivery_id, event_id, rule_id, channel_id, event_type, session_id, url, receiver, body, status,
        max_attempts, ended_at)
       SELECT tenant_id, $1, $1, rule_id, channel_id, 'agent.registered', '', 'https://example.com/hook', 'https://example.com', '', 'failed', 3,
              now() FROM alert_channels WHERE rule_id = $2`,
    [delivery_id, rule_id],
  );
  return { delivery_id };
}

const planSteps = [{ description: 'look', message: 'look', agent_type: 'worker' }];
/** A plan that a worker proposed. */
async function proposed(): Promise<{ plan_id: string }> {
  const { session_id } = await asked();
  const given = { session_id, description: 'a plan', steps: planSteps };
  const { body } = await postAs(tokens['own read'] ?? '', '/plans/create', given);
  return { plan_id: (body as { plan: { plan_id: string } }).plan.plan_id };
}

/** A message whose agent's answer a guard holds. */
async function heldOutput(): Promise<{ message_id: string }> {
  const task = await api.client.send('hello', { metadata: { agent_type: 'worker' }, blocking: false });
  const held = { guard: 'secrets', rule: 'x', decision: 'require_approval', path: '' } as const;
  await answerMessage(api, task.id, { ...COMPLETED, held: { ...held, reason: 'It holds a key.' } });
  return { message_id: task.id };
}

async function credential(): Promise<{ credential_id: string }> {
  return { credential_id: (await api.credentialOf(api.tenantId, ['read'])).client_id };
}

async function knowledgeBase(): Promise<{ namespace: string }> {
  const namespace = `base-${++names}`;
  expect((await api.client.post('/knowledge_base/new', { namespace })).status).toBe(200);
  return { namespace };
}
/** A base with a source, and its job. */
async function filled(): Promise<{ namespace: string; job_id: string }> {
  const { namespace } = await knowledgeBase();
  const { body } = await api.client.post('/knowledge_base/ingest', { namespace, source_id: 'a', content: 'Words.' });
  return { namespace, job_id: (body as { job_id: string }).job_id };
}
const filledBase = async () => ({ namespace: (await filled()).namespace });

/** A call, and what it comes to for each kind of token. */
interface Case {
  body?: Body | undefined;
  /** Which method of A2A is called, in which version. */
  what?: string;
  version?: string;
  /** The lowest scope of a token that acts for the tenant; null where no token is looked at. */
  needs: Scope | 'operator' | null;
  /** Of an agent of the type that serves; of an agent of another type; of another tenant, with scope `full`. */
  own: Outcome;
  foreign: Outcome;
  tenant: Outcome;
  /** Without a token, where that is not `unauthorized`; that it is elsewhere is in error-contract.test.ts. */
  none?: Outcome;
}
type Body = () => object | Promise<object>;

const nothing = () => ({});
/** Not for any token of a tenant; test/audit/operators.test.ts has those of operators. */
const operators: Case = {
  needs: 'operator',
  own: 'forbidden',
  foreign: 'forbidden',
  tenant: 'forbidden',
  body: () => ({}),
};
const open = { needs: null, own: 'allowed', foreign: 'allowed', tenant: 'allowed' } as const;
const record = { needs: 'read', own: 'allowed', foreign: 'missing', tenant: 'missing' } as const;
const list = { needs: 'read', own: 'allowed', foreign: 'empty', tenant: 'empty' } as const;
/** Push notifications belong to who sent the task. */
const push = { needs: 'read', own: 'forbidden', foreign: 'missing', tenant: 'missing' } as const;
/** A call that no agent may make. */
const closed = (needs: Scope, tenant: Outcome, body: Body | undefined = nothing): Case => ({
  ...{ needs, tenant, body, own: 'forbidden', foreign: 'forbidden' },
});
/** A call of A2A. */
const a2a = (rule: Omit<Case, 'body'>, method: string, given: Body, version?: string): Case => ({
  ...{ ...rule, what: method, body: async () => rpc(method, await given()) },
  ...(version && { version }),
});

const taskId = async () => ({ id: (await asked()).id });
const sessionId = async () => ({ session_id: (await asked()).session_id });
const messageId = async () => ({ message_id: (await asked()).id });
const canceled = async () => {
  const given = await messageId();
  expect((await api.client.post('/messages/cancel', given)).status).toBe(200);
  return { ...given, confirm: true };
};
const PUSH = 'tasks/pushNotificationConfig';
const pushConfig = { url: 'https://example.com/hook' };
const newPush = async () => ({ taskId: (await asked()).id, pushNotificationConfig: pushConfig });
const setPush = async () => {
  const given = await newPush();
  expect((await api.client.post('/send', rpc(`${PUSH}/set`, given))).body).toHaveProperty('result');
  return { id: given.taskId, pushNotificationConfigId: given.taskId };
};

/** The request of a message that waits. */
async function requestId(): Promise<{ request_id: string }> {
  const pending = "SELECT request_id FROM input_requests WHERE message_id = $1 AND state = 'pending'";
  return { request_id: (await api.database.value<string>(pending, [(await asked()).id])) ?? '' };
}

/** The same, decided. */
async function decidedId(): Promise<{ request_id: string }> {
  const { request_id } = await requestId();
  await api.client.post('/requests/resolve_many', { request_ids: [request_id], resolution: 'confirmed' });
  return { request_id };
}

const CASES: Record<Exclude<Name, 'connectAgent'>, Case | Case[]> = {
  getToken: { ...open, body: () => api.credentialOf(api.tenantId, ['read']) },
  jwks: open,
  revokeUser: closed('full', 'allowed', () => ({ user_id: 'eve' })),
  createCredential: closed('full', 'allowed', () => ({ name: 'x', scopes: ['read'] })),
  getCredentials: closed('full', 'allowed'),
  rotateCredential: closed('full', 'missing', credential),
  revokeCredential: closed('full', 'missing', credential),

  initSession: closed('read', 'allowed'),
  getSessions: { ...list, body: () => ({ status: 'paused' }) },
  getSession: { ...record, body: sessionId },
  closeSession: { ...record, body: sessionId },
  interruptSessions: { ...record, body: async () => ({ ids: [(await asked()).session_id] }) },
  inviteAgent: closed('read', 'missing', async () => ({ ...(await sessionId()), agent_type: 'worker' })),

  send: [
    a2a({ ...open, needs: 'read' }, 'message/send', () => params()),
    {
      ...closed('read', 'missing', async () => rpc('message/send', params('yes', { taskId: (await asked()).id }))),
      what: 'an answer',
    },
    a2a(record, 'tasks/get', taskId),
    a2a(record, 'tasks/cancel', taskId),
    a2a(record, 'tasks/resubscribe', taskId),
    a2a(list, 'ListTasks', () => ({ status: 'TASK_STATE_INPUT_REQUIRED' }), '1.0'),
    a2a(push, `${PUSH}/set`, newPush),
    a2a(push, `${PUSH}/get`, setPush),
    a2a(push, `${PUSH}/list`, setPush),
    a2a(push, `${PUSH}/delete`, setPush),
    a2a({ ...open, needs: 'read' }, 'agent/getAuthenticatedExtendedCard', nothing),
  ],
  sendToType: [
    a2a({ ...open, needs: 'read', tenant: 'missing' }, 'message/send', () => params()),
    a2a(record, 'tasks/get', taskId),
  ],
  getMessages: { ...list, body: () => ({ state: 'input-required' }) },
  getMessage: { ...record, body: messageId },
  cancelMessage: { ...record, body: messageId },
  // Those who serve a message have not sent it.
  retryMessage: { needs: 'admin', own: 'forbidden', foreign: 'missing', tenant: 'missing', body: canceled },
  pendingMessages: closed('read', 'empty'),
  getMessageGroups: closed('read', 'allowed', () => ({ by: 'agent_type' })),
  getMessageRates: closed('read', 'allowed', () => ({})),
  resolveMessage: closed('read', 'missing', () => ({ resolution: 'confirmed' })),
  // Those who serve a message have not sent it.
  getApprovals: { own: 'missing', foreign: 'missing', needs: 'admin', tenant: 'missing', body: messageId },
  getHeldOutput: closed('admin', 'missing', heldOutput),
  exportApprovals: closed('admin', 'allowed'),

  getRequests: { ...list, body: nothing },
  getRequest: { ...record, body: requestId },
  getSimilarRequests: { ...record, body: requestId },
  resolveRequests: closed('read', 'allowed', async () => ({
    request_ids: [(await requestId()).request_id],
    resolution: 'confirmed',
  })),
  getReceipt: { ...record, body: decidedId },

  registerAgent: {
    ...{ needs: 'full', own: 'allowed', foreign: 'forbidden', tenant: 'allowed' },
    body: () => ({ instance_id: `registered-${++names}`, agent_type: 'worker' }),
  },
  heartbeat: { ...record, needs: 'admin', body: registered },
  getAgents: closed('read', 'allowed'),
  getAgentTypes: closed('read', 'allowed'),
  getAgent: { ...record, body: registered },
  deregisterAgent: { ...record, needs: 'admin', body: registered },
  drainAgent: { ...record, needs: 'admin', body: registered },
  undrainAgent: { ...record, needs: 'admin', body: registered },
  getConnection: { ...record, body: registered },
  getConnectionStats: closed('read', 'allowed'),
  allowType: closed('admin', 'allowed', () => ({ agent_type: 'worker' })),
  disallowType: closed('admin', 'allowed', () => ({ agent_type: 'nobody' })),
  setDefaultType: closed('admin', 'allowed', () => ({ agent_type: null })),

  getTools: closed('read', 'allowed'),
  setToolOwner: closed('admin', 'allowed', () => ({ tool: 'x', agent_types: null })),
  callTool: { ...open, needs: 'full', tenant: 'empty', body: () => ({ tool: 'fleet.get_agents' }) },
  createPlan: { ...record, body: async () => ({ ...(await sessionId()), description: 'a plan', steps: planSteps }) },
  getPlans: { ...list, body: async () => (await proposed()) && { state: 'proposed' } },
  getPlan: { ...record, body: proposed },
  approvePlan: closed('admin', 'missing', proposed),
  rejectPlan: closed('admin', 'missing', proposed),
  cancelPlan: { ...record, body: proposed },
  createPolicy: closed('admin', 'allowed', () => ({ scope: 'plan', name: 'x', decision: 'allow' })),
  getPolicies: closed('admin', 'allowed'),
  getPolicy: closed('admin', 'missing', policy),
  updatePolicy: closed('admin', 'missing', policy),
  deletePolicy: closed('admin', 'missing', policy),
  testPolicy: closed('admin', 'allowed', () => ({ scope: 'plan', action: 'create' })),
  backtestPolicy: closed('admin', 'allowed', () => ({ policy: { scope: 'plan', decision: 'deny' } })),
  getGuards: closed('admin', 'allowed'),
  updateGuard: closed('admin', 'allowed', () => ({ guard: 'path' })),
  newAlert: closed('admin', 'allowed', () => alert),
  getAlerts: closed('admin', 'allowed'),
  getAlert: closed('admin', 'missing', () => alertRule()),
  updateAlert: closed('admin', 'missing', async () => ({ ...(await alertRule()), enabled: false })),
  deleteAlert: closed('admin', 'missing', () => alertRule()),
  testAlert: closed('admin', 'missing', () =>
    alertRule([{ type: 'email', config: { recipients: ['a@example.com'] } }]),
  ),
  getDeliveries: closed('admin', 'empty', async () => (await failedDelivery()) && {}),
  redeliver: closed('admin', 'missing', failedDelivery),
  // Only Slack's signature counts.
  slackInteraction: { ...open, own: 'unauthorized', body: () => ({ payload: '{}' }) },

  getEvents: closed('read', 'allowed'),
  streamEvents: closed('read', 'allowed'),
  streamEventsByQuery: { ...closed('read', 'allowed'), body: undefined },
  getTraces: closed('read', 'allowed'),
  getUsage: closed('read', 'allowed'),

  createTenant: operators,
  getTenants: operators,
  getTenant: operators,
  updateTenant: operators,
  deleteTenant: operators,
  getLimits: closed('full', 'allowed'),
  setLimits: closed('full', 'allowed'),
  getPrices: closed('full', 'allowed'),
  setPrices: closed('full', 'allowed', () => ({ model: 'm', input_per_million: 1, output_per_million: 2 })),

  getAudit: closed('admin', 'allowed'),

  newKnowledgeBase: closed('full', 'allowed', () => ({ namespace: `made-${++names}` })),
  getKnowledgeBases: closed('read', 'allowed'),
  getKnowledgeBase: closed('read', 'missing', knowledgeBase),
  updateKnowledgeBase: closed('full', 'missing', knowledgeBase),
  deleteKnowledgeBase: closed('full', 'missing', knowledgeBase),
  ingestDocuments: closed('full', 'missing', async () => ({ ...(await knowledgeBase()), content: 'Words.' })),
  queryKnowledge: closed('read', 'missing', async () => ({ ...(await knowledgeBase()), query: 'words' })),
  refreshKnowledgeBase: closed('full', 'missing', knowledgeBase),
  getKnowledgeStats: closed('read', 'missing', knowledgeBase),
  getKnowledgeSources: closed('read', 'missing', filledBase),
  deleteKnowledgeSource: closed('full', 'missing', async () => ({ ...(await filledBase()), source_id: 'a' })),
  getKnowledgeJobs: closed('read', 'missing', filledBase),
  getKnowledgeJob: closed('read', 'missing', async () => ({ job_id: (await filled()).job_id })),

  health: open,
  agentCard: { ...open, needs: 'read', none: 'allowed' },
  // The other tenant has a worker too by now.
  agentTypeCard: { ...open, needs: 'read', none: 'allowed' },
  platformHealth: operators,
  openapi: open,
};

/** What limited tokens come to, about records that are nobody's, in another session, of a worker; everything else is forbidden. */
const OF_LIMITED: Record<string, Outcome> = {
  initSession: 'allowed',
  getSessions: 'empty',
  getSession: 'missing',
  closeSession: 'missing',
  interruptSessions: 'missing',
  'send message/send': 'allowed',
  'send an answer': 'missing',
  'send tasks/get': 'missing',
  'send tasks/cancel': 'missing',
  'send tasks/resubscribe': 'missing',
  'send ListTasks': 'empty',
  'sendToType message/send': 'allowed',
  'sendToType tasks/get': 'missing',
  getMessages: 'empty',
  getMessage: 'missing',
  cancelMessage: 'missing',
  pendingMessages: 'empty',
  resolveMessage: 'missing',
  getRequests: 'empty',
  streamEvents: 'allowed',
  streamEventsByQuery: 'allowed',
  agentTypeCard: 'allowed',
};

/** Where a token differs that is limited to a session, or to agent types that the record does not have. */
const OF_SESSION: Record<string, Outcome> = { initSession: 'forbidden' };
const OF_TYPES: Record<string, Outcome> = {
  ...{ initSession: 'forbidden', closeSession: 'forbidden', interruptSessions: 'forbidden' },
  ...{ 'send message/send': 'forbidden', 'sendToType message/send': 'forbidden', agentTypeCard: 'missing' },
};
/** What each kind of limited token comes to in a case. */
function limitedOutcomes(key: string): Record<'user' | 'session' | 'types', Outcome> {
  const user = OF_LIMITED[key] ?? 'forbidden';
  return { user, session: OF_SESSION[key] ?? user, types: OF_TYPES[key] ?? user };
}

const RANK: Scope[] = ['read', 'admin', 'full'];
/**
 * What each kind of token comes to. Of tokens that act for the tenant the lowest scope that is enough and the one below it tell: how scopes
 * include each other, and that none lets an agent do more, is a table of test/contracts/permissions.test.ts.
 */
function expectedOf({ needs, own, foreign, tenant, none }: Case, key: string): Record<string, Outcome> {
  const limits = limitedOutcomes(key);
  if (needs === 'operator') return { none: 'unauthorized', full: 'forbidden', 'own full': 'forbidden', ...limits };
  if (needs === null) return { none: own, 'foreign read': own, user: own };
  const below = RANK[RANK.indexOf(needs) - 1];
  const scopes = { [needs]: 'allowed' as const, ...(below && { [below]: 'forbidden' as const }) };
  const agents = { 'own read': own, 'own full': own, 'foreign full': foreign };
  return { ...(none && { none }), 'other tenant': tenant, ...agents, ...scopes, ...limits };
}

const BY_STATUS: Record<number, Outcome> = { 401: 'unauthorized', 403: 'forbidden', 404: 'missing' };
const TASK_NOT_FOUND = /"code":-32001\b/;
const REFUSED = /^\{"jsonrpc":"2.0","id":1,"error"|^\{"ok":false/;

async function outcomeOf(name: Name, { body, version }: Case, token: string | null): Promise<Outcome> {
  const { method, path, stream } = OPERATIONS[name] as Operation;
  const headers: Record<string, string> = { ...(version && { 'a2a-version': version }) };
  if (token !== null) headers.authorization = `Bearer ${token}`;
  const id = name === 'resolveMessage' ? (await asked()).id : '';
  const url = new URL(path.replace(':id', id).replace(':agent_type', 'worker'), api.baseUrl);
  const given = body && JSON.stringify(await body());
  if (given !== undefined) headers['content-type'] = 'application/json';
  const response = await fetch(url, { method, headers, body: given ?? null });
  if (stream === true && response.ok) {
    await response.body?.cancel(); // it would go on for ever
    return 'allowed';
  }
  const text = await response.text();
  const refused = BY_STATUS[response.status];
  if (refused) return refused;
  if (TASK_NOT_FOUND.test(text)) return 'missing';
  if (response.status !== 200 || REFUSED.test(text))
    throw new Error(`${path}: ${response.status} ${text.slice(0, 500)}`);
  const lists = text.replace(/"latency_ms":\{[^}]*\}/, ''); // its count is one of answers
  return /"(count|total|totalSize)":0\b/.test(lists) ? 'empty' : 'allowed';
}

describe('every operation with every kind of token', () => {
  const cases = Object.entries(CASES).flatMap(([name, given]) =>
    [given].flat().map((each) => [name as Name, each.what ?? '', each] as const),
  );

  test('is there', () => {
    expect(Object.keys(CASES)).toEqual(Object.keys(OPERATIONS).filter((name) => name !== 'connectAgent'));
  });

  test.each(cases)('%s %s', async (name, what, each) => {
    await asked();
    const expected = expectedOf(each, `${name} ${what}`.trim());
    const outcomes = Object.keys(expected).map(async (kind) => [
      kind,
      await outcomeOf(name, each, tokens[kind] ?? null),
    ]);
    expect(Object.fromEntries(await Promise.all(outcomes))).toEqual(expected);
  });
});

describe('what an agent may do', () => {
  type RpcBody = { result?: { id: string; contextId: string }; error?: { code: number; data?: { code: string } } };
  /** A call of `/send` with this token. */
  async function call(token: string, method: string, given: object): Promise<{ status: number; body: RpcBody }> {
    const { status, body } = await postAs(token, '/send', rpc(method, given));
    return { status, body: body as RpcBody };
  }
  const [worker = '', painter = ''] = [tokens['own read'] ?? '', tokens['foreign read'] ?? ''];

  test('what it sent is its own: it reads, follows and cancels it, and sets its push notifications', async () => {
    const sent = (await call(painter, 'message/send', params())).body.result;
    if (!sent) throw new Error('nothing was sent');
    await answerMessage(api, sent.id, ASKS);
    const { id, contextId: session_id } = sent;
    expect((await postAs(painter, '/messages/get_by_id', { message_id: id })).body).toMatchObject({
      message: { message_id: id, role: 'agent', agent_type: 'worker' },
    });
    expect((await postAs(painter, '/messages/get', { session_id })).body).toMatchObject({ count: 1 });
    expect((await postAs(painter, '/sessions/get_by_id', { session_id })).status).toBe(200);
    const config = { taskId: id, pushNotificationConfig: pushConfig };
    expect((await call(painter, 'tasks/pushNotificationConfig/set', config)).body).toHaveProperty('result');
    expect((await call(painter, 'tasks/pushNotificationConfig/list', { id })).body).toHaveProperty('result');
    expect((await call(painter, 'message/send', params('yes', { taskId: id }))).status).toBe(403);
    expect((await postAs(painter, `/messages/${id}/resolve`, { resolution: 'confirmed' })).status).toBe(403);
    expect((await postAs(painter, '/messages/cancel', { message_id: id })).status).toBe(200);
  });

  test('it sends into a session of its own, or one that it names, and into no other', async () => {
    const { session_id } = await asked();
    const elsewhere = await call(painter, 'message/send', params('hi', { contextId: session_id }));
    expect(elsewhere.body.error).toMatchObject({ code: -32602, data: { code: 'NOT_FOUND' } });
    const contextId = `named-${randomUUID()}`;
    const named = await Promise.all([1, 2].map(() => call(painter, 'message/send', params('hi', { contextId }))));
    expect(named.map(({ body }) => body.result?.contextId)).toEqual([contextId, contextId]);
    const taken = await call(worker, 'message/send', params('hi', { contextId: session_id }));
    expect(taken.body.result?.contextId).toBe(session_id);
    await api.client.send('hi', { contextId: 'of-the-tenant', blocking: false });
    const foreign = await call(painter, 'message/send', params('hi', { contextId: 'of-the-tenant' }));
    expect(foreign.body.error).toMatchObject({ code: -32602, data: { code: 'NOT_FOUND' } });
  });

  test("agents that share a credential do not get each other's tasks by their messageId", async () => {
    const shared = await api.credentialOf(api.tenantId, ['read'], ['*']);
    const tokenFor = (agentType: string) => api.tokenAs(shared, agentType);
    const message = params('once', { messageId: 'shared-1' });
    const first = (await call(await tokenFor('baker'), 'message/send', message)).body.result?.id;
    expect((await call(await tokenFor('baker'), 'message/send', message)).body.result?.id).toBe(first);
    const other = await call(await tokenFor('butcher'), 'message/send', message);
    expect(other.body.error?.data?.code).toBe('IDEMPOTENCY_MISMATCH');
    expect(first).toMatch(/^msg_/);
    expect(JSON.stringify(other.body)).not.toContain(first);
  });

  test('it names no session of another in a tool call', async () => {
    const { session_id } = await asked();
    const calling = { tool: 'look_up', target: { agent_type: 'worker' }, session_id };
    expect((await postAs(painter, '/tools/call', calling)).body).toMatchObject({
      error: { code: 'NOT_FOUND' },
    });
    const codeOf = ({ body }: { body: unknown }) => (body as { error: { code: string } }).error.code;
    expect(codeOf(await postAs(worker, '/tools/call', calling))).toBe('TOOL_NOT_FOUND');
  });

  test('with the scope full it is of its own type all the same', async () => {
    const { instance_id } = await registered();
    const painter = tokens['foreign full'] ?? '';
    const taking = { instance_id, agent_type: 'painter' };
    expect((await postAs(painter, '/agents/register', taking)).status).toBe(403);
    expect((await postAs(painter, '/agents/register', { agent_type: 'worker' })).status).toBe(403);
    expect((await postAs(painter, '/tools/call', { tool: 'fleet.get_agents', instance_id })).status).toBe(404);
  });
});
