import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import type { Operation } from '../../contracts/api/operation.js';
import { OPERATIONS } from '../../contracts/api/operations.js';
import type { Scope } from '../../contracts/primitives.js';
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
const claims = { agent_type: 'credential', scopes: ['full' as const], sub: 'c', credential_id: 'c' };
tokens.expired = await api.tokens.issueAccessToken({ ...claims, tenant_id: api.tenantId }, -1);
tokens.none = null;
/** A tenant has room for so many messages in flight only. */
afterEach(async () => {
  await api.database.query("UPDATE messages SET state = 'canceled'");
  await api.database.query('DELETE FROM running_messages');
});

const params = (text = 'hi', change: object = {}) => ({
  message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text }], ...change },
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
async function alertRule(): Promise<{ rule_id: string }> {
  const { body } = await api.client.post('/policies/new_alert', alert);
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
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${tokens['own read']}` };
  const given = JSON.stringify({ session_id, description: 'a plan', steps: planSteps });
  const { body } = await api.client.raw('/plans/create', given, headers);
  return { plan_id: (body as { plan: { plan_id: string } }).plan.plan_id };
}

/** A message whose agent's answer a guard holds. */
async function heldOutput(): Promise<{ message_id: string }> {
  const task = await api.client.send('hello', { metadata: { agent_type: 'worker' }, blocking: false });
  const held = {
    guard: 'secrets',
    rule: 'x',
    decision: 'require_approval',
    reason: 'It holds a key.',
    path: '',
  } as const;
  await answerMessage(api, task.id, { ...COMPLETED, held });
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
  /** With which body, in which version of A2A. */
  body?: () => object | Promise<object>;
  what?: string;
  version?: string;
  /** The lowest scope of a token that acts for the tenant; null where no token is looked at. */
  needs: Scope | null;
  /** Of an agent of the type that serves; of an agent of another type; of another tenant, with scope `full`. */
  own: Outcome;
  foreign: Outcome;
  tenant: Outcome;
  /** Without a token, where that is not `unauthorized`. */
  none?: Outcome;
}

const open = { needs: null, own: 'allowed', foreign: 'allowed', tenant: 'allowed' } as const;
const forbidden = { own: 'forbidden', foreign: 'forbidden' } as const;
const record = { needs: 'read', own: 'allowed', foreign: 'missing', tenant: 'missing' } as const;
const list = { needs: 'read', own: 'allowed', foreign: 'empty', tenant: 'empty' } as const;
const taskId = async () => ({ id: (await asked()).id });
const pushConfig = { url: 'https://example.com/hook' };
const pushParams = async () => {
  const { id } = await asked();
  const set = rpc('tasks/pushNotificationConfig/set', { taskId: id, pushNotificationConfig: pushConfig });
  expect((await api.client.post('/send', set)).body).toHaveProperty('result');
  return { id, pushNotificationConfigId: id };
};
/** Push notifications belong to who sent the task. */
const push = { needs: 'read', own: 'forbidden', foreign: 'missing', tenant: 'missing' } as const;

const CASES: Record<Exclude<Name, 'connectAgent'>, Case | Case[]> = {
  getToken: { ...open, body: () => api.credentialOf(api.tenantId, ['read']) },
  jwks: open,
  createCredential: {
    ...forbidden,
    needs: 'full',
    tenant: 'allowed',
    body: () => ({ name: 'x', scopes: ['read'] }),
  },
  getCredentials: { ...forbidden, needs: 'full', tenant: 'allowed', body: () => ({}) },
  rotateCredential: { ...forbidden, needs: 'full', tenant: 'missing', body: credential },
  revokeCredential: { ...forbidden, needs: 'full', tenant: 'missing', body: credential },

  initSession: { ...forbidden, needs: 'read', tenant: 'allowed', body: () => ({}) },
  getSessions: { ...list, body: () => ({ status: 'paused' }) },
  getSession: { ...record, body: async () => ({ session_id: (await asked()).session_id }) },
  closeSession: { ...record, body: async () => ({ session_id: (await asked()).session_id }) },
  interruptSessions: { ...record, body: async () => ({ ids: [(await asked()).session_id] }) },
  inviteAgent: {
    ...forbidden,
    needs: 'read',
    tenant: 'missing',
    body: async () => ({ session_id: (await asked()).session_id, agent_type: 'worker' }),
  },

  send: [
    { ...open, needs: 'read', what: 'message/send', body: () => rpc('message/send', params()) },
    {
      ...forbidden,
      what: 'an answer',
      needs: 'read',
      tenant: 'missing',
      body: async () => rpc('message/send', params('yes', { taskId: (await asked()).id })),
    },
    { ...record, what: 'tasks/get', body: async () => rpc('tasks/get', await taskId()) },
    { ...record, what: 'tasks/cancel', body: async () => rpc('tasks/cancel', await taskId()) },
    { ...record, what: 'tasks/resubscribe', body: async () => rpc('tasks/resubscribe', await taskId()) },
    {
      ...list,
      what: 'ListTasks',
      version: '1.0',
      body: () => rpc('ListTasks', { status: 'TASK_STATE_INPUT_REQUIRED' }),
    },
    {
      ...push,
      what: 'set push',
      body: async () =>
        rpc('tasks/pushNotificationConfig/set', {
          taskId: (await asked()).id,
          pushNotificationConfig: pushConfig,
        }),
    },
    { ...push, what: 'get push', body: async () => rpc('tasks/pushNotificationConfig/get', await pushParams()) },
    { ...push, what: 'list push', body: async () => rpc('tasks/pushNotificationConfig/list', await pushParams()) },
    { ...push, what: 'delete push', body: async () => rpc('tasks/pushNotificationConfig/delete', await pushParams()) },
    { ...open, what: 'card', needs: 'read', body: () => rpc('agent/getAuthenticatedExtendedCard', {}) },
  ],
  sendToType: [
    { ...open, needs: 'read', tenant: 'missing', what: 'message/send', body: () => rpc('message/send', params()) },
    { ...record, what: 'tasks/get', body: async () => rpc('tasks/get', await taskId()) },
  ],
  getMessages: { ...list, body: () => ({ state: 'input-required' }) },
  getMessage: { ...record, body: async () => ({ message_id: (await asked()).id }) },
  cancelMessage: { ...record, body: async () => ({ message_id: (await asked()).id }) },
  pendingMessages: { ...forbidden, needs: 'read', tenant: 'empty', body: () => ({}) },
  resolveMessage: { ...forbidden, needs: 'read', tenant: 'missing', body: () => ({ resolution: 'confirmed' }) },
  // Those who serve a message have not sent it.
  getApprovals: {
    own: 'missing',
    foreign: 'missing',
    needs: 'admin',
    tenant: 'missing',
    body: async () => ({ message_id: (await asked()).id }),
  },
  getHeldOutput: { ...forbidden, needs: 'admin', tenant: 'missing', body: heldOutput },
  exportApprovals: { ...forbidden, needs: 'admin', tenant: 'allowed', body: () => ({}) },

  registerAgent: {
    needs: 'full',
    own: 'allowed',
    foreign: 'forbidden',
    tenant: 'allowed',
    body: () => ({ instance_id: `registered-${++names}`, agent_type: 'worker' }),
  },
  heartbeat: { ...record, needs: 'admin', body: registered },
  getAgents: { ...forbidden, needs: 'read', tenant: 'allowed', body: () => ({}) },
  getAgent: { ...record, body: registered },
  deregisterAgent: { ...record, needs: 'admin', body: registered },
  getConnection: { ...record, body: registered },
  getConnectionStats: { ...forbidden, needs: 'read', tenant: 'allowed', body: () => ({}) },
  allowType: { ...forbidden, needs: 'admin', tenant: 'allowed', body: () => ({ agent_type: 'worker' }) },
  disallowType: { ...forbidden, needs: 'admin', tenant: 'allowed', body: () => ({ agent_type: 'nobody' }) },
  setDefaultType: { ...forbidden, needs: 'admin', tenant: 'allowed', body: () => ({ agent_type: null }) },

  getTools: { ...forbidden, needs: 'read', tenant: 'allowed', body: () => ({}) },
  setToolOwner: { ...forbidden, needs: 'admin', tenant: 'allowed', body: () => ({ tool: 'x', agent_types: null }) },
  callTool: { ...open, needs: 'full', tenant: 'empty', body: () => ({ tool: 'fleet.get_agents' }) },
  createPlan: {
    ...record,
    body: async () => ({ session_id: (await asked()).session_id, description: 'a plan', steps: planSteps }),
  },
  getPlans: {
    ...list,
    body: async () => {
      await proposed();
      return { state: 'proposed' };
    },
  },
  getPlan: { ...record, body: proposed },
  approvePlan: { ...forbidden, needs: 'admin', tenant: 'missing', body: proposed },
  rejectPlan: { ...forbidden, needs: 'admin', tenant: 'missing', body: proposed },
  cancelPlan: { ...record, body: proposed },
  createPolicy: {
    ...forbidden,
    needs: 'admin',
    tenant: 'allowed',
    body: () => ({ scope: 'plan', name: 'x', decision: 'allow' }),
  },
  getPolicies: { ...forbidden, needs: 'admin', tenant: 'allowed', body: () => ({}) },
  getPolicy: { ...forbidden, needs: 'admin', tenant: 'missing', body: policy },
  updatePolicy: { ...forbidden, needs: 'admin', tenant: 'missing', body: policy },
  deletePolicy: { ...forbidden, needs: 'admin', tenant: 'missing', body: policy },
  testPolicy: { ...forbidden, needs: 'admin', tenant: 'allowed', body: () => ({ scope: 'plan', action: 'create' }) },
  getGuards: { ...forbidden, needs: 'admin', tenant: 'allowed', body: () => ({}) },
  updateGuard: { ...forbidden, needs: 'admin', tenant: 'allowed', body: () => ({ guard: 'path' }) },
  newAlert: { ...forbidden, needs: 'admin', tenant: 'allowed', body: () => alert },
  getAlerts: { ...forbidden, needs: 'admin', tenant: 'allowed', body: () => ({}) },
  getAlert: { ...forbidden, needs: 'admin', tenant: 'missing', body: alertRule },
  updateAlert: {
    ...forbidden,
    needs: 'admin',
    tenant: 'missing',
    body: async () => ({ ...(await alertRule()), enabled: false }),
  },
  deleteAlert: { ...forbidden, needs: 'admin', tenant: 'missing', body: alertRule },
  testAlert: {
    ...forbidden,
    needs: 'admin',
    tenant: 'missing',
    body: async () => {
      const notifications = [{ type: 'email', config: { recipients: ['a@example.com'] } }];
      const { body } = await api.client.post('/policies/new_alert', { ...alert, notifications });
      return { rule_id: (body as { rule_id: string }).rule_id };
    },
  },
  getDeliveries: {
    ...forbidden,
    needs: 'admin',
    tenant: 'empty',
    body: async () => {
      await failedDelivery();
      return {};
    },
  },
  redeliver: { ...forbidden, needs: 'admin', tenant: 'missing', body: failedDelivery },
  // Only Slack's signature counts.
  slackInteraction: { ...open, own: 'unauthorized', body: () => ({ payload: '{}' }) },

  getEvents: { ...forbidden, needs: 'read', tenant: 'allowed', body: () => ({}) },
  streamEvents: { ...forbidden, needs: 'read', tenant: 'allowed', body: () => ({}) },
  streamEventsByQuery: { ...forbidden, needs: 'read', tenant: 'allowed' },
  getTraces: { ...forbidden, needs: 'read', tenant: 'allowed', body: () => ({}) },
  getUsage: { ...forbidden, needs: 'read', tenant: 'allowed', body: () => ({}) },

  getLimits: { ...forbidden, needs: 'full', tenant: 'allowed', body: () => ({}) },
  setLimits: { ...forbidden, needs: 'full', tenant: 'allowed', body: () => ({}) },
  getPrices: { ...forbidden, needs: 'full', tenant: 'allowed', body: () => ({}) },
  setPrices: {
    ...forbidden,
    needs: 'full',
    tenant: 'allowed',
    body: () => ({ model: 'm', input_per_million: 1, output_per_million: 2 }),
  },

  newKnowledgeBase: {
    ...forbidden,
    needs: 'full',
    tenant: 'allowed',
    body: () => ({ namespace: `made-${++names}` }),
  },
  getKnowledgeBases: { ...forbidden, needs: 'read', tenant: 'allowed', body: () => ({}) },
  getKnowledgeBase: { ...forbidden, needs: 'read', tenant: 'missing', body: knowledgeBase },
  updateKnowledgeBase: { ...forbidden, needs: 'full', tenant: 'missing', body: knowledgeBase },
  deleteKnowledgeBase: { ...forbidden, needs: 'full', tenant: 'missing', body: knowledgeBase },
  ingestDocuments: {
    ...forbidden,
    needs: 'full',
    tenant: 'missing',
    body: async () => ({ ...(await knowledgeBase()), content: 'Words.' }),
  },
  queryKnowledge: {
    ...forbidden,
    needs: 'read',
    tenant: 'missing',
    body: async () => ({ ...(await knowledgeBase()), query: 'words' }),
  },
  refreshKnowledgeBase: { ...forbidden, needs: 'full', tenant: 'missing', body: knowledgeBase },
  getKnowledgeStats: { ...forbidden, needs: 'read', tenant: 'missing', body: knowledgeBase },
  getKnowledgeSources: { ...forbidden, needs: 'read', tenant: 'missing', body: filledBase },
  deleteKnowledgeSource: {
    ...forbidden,
    needs: 'full',
    tenant: 'missing',
    body: async () => ({ namespace: (await filledBase()).namespace, source_id: 'a' }),
  },
  getKnowledgeJob: {
    ...forbidden,
    needs: 'read',
    tenant: 'missing',
    body: async () => ({ job_id: (await filled()).job_id }),
  },

  health: open,
  agentCard: { ...open, needs: 'read', none: 'allowed' },
  // The other tenant has a worker too by now.
  agentTypeCard: { ...open, needs: 'read', none: 'allowed' },
  openapi: open,
};

const RANK = ['read', 'admin', 'full'];
function expectedFor(kind: string, { needs, own, foreign, tenant, none }: Case): Outcome {
  if (needs === null) return own;
  if (kind === 'none') return none ?? 'unauthorized';
  if (kind === 'expired') return 'unauthorized';
  if (kind === 'other tenant') return tenant;
  if (kind.startsWith('own')) return own;
  if (kind.startsWith('foreign')) return foreign;
  return RANK.indexOf(kind) >= RANK.indexOf(needs) ? 'allowed' : 'forbidden';
}

const BY_STATUS: Record<number, Outcome> = { 401: 'unauthorized', 403: 'forbidden', 404: 'missing' };
const TASK_NOT_FOUND = /"code":-32001\b/;
const REFUSED = /^\{"jsonrpc":"2.0","id":1,"error"|^\{"ok":false/;

async function outcomeOf(name: Name, { body, version }: Case, token: string | null): Promise<Outcome> {
  const { method, path, stream } = OPERATIONS[name] as Operation;
  const headers: Record<string, string> = { ...(version && { 'a2a-version': version }) };
  if (token !== null) headers.authorization = `Bearer ${token}`;
  const url = new URL(
    path.replace(':id', name === 'resolveMessage' ? (await asked()).id : '').replace(':agent_type', 'worker'),
    api.baseUrl,
  );
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

  test.each(cases)('%s %s', async (name, _what, each) => {
    await asked();
    const found: Record<string, Outcome> = {};
    const expected: Record<string, Outcome> = {};
    for (const [kind, token] of Object.entries(tokens)) {
      found[kind] = await outcomeOf(name, each, token);
      expected[kind] = expectedFor(kind, each);
    }
    expect(found).toEqual(expected);
  });
});

describe('what an agent may do', () => {
  /** A call of `/send` with this token. */
  async function call(
    token: string,
    method: string,
    given: object,
  ): Promise<{ status: number; text: string; body: RpcBody }> {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
    const body = JSON.stringify(rpc(method, given));
    const response = await fetch(new URL('/send', api.baseUrl), { method: 'POST', headers, body });
    const text = await response.text();
    return { status: response.status, text, body: JSON.parse(text) as RpcBody };
  }
  type RpcBody = { result?: { id: string; contextId: string }; error?: { code: number; data?: { code: string } } };
  const own = (kind: string) => tokens[kind] as string;
  const post = (token: string, path: string, body: object) =>
    api.client.raw(path, JSON.stringify(body), {
      'content-type': 'application/json',
      authorization: `Bearer ${token}`,
    });

  test('what it sent is its own: it reads, follows and cancels it, and sets its push notifications', async () => {
    const painter = own('foreign read');
    const sent = (await call(painter, 'message/send', params())).body.result;
    if (!sent) throw new Error('nothing was sent');
    await answerMessage(api, sent.id, ASKS);
    const { id, contextId: session_id } = sent;
    expect((await post(painter, '/messages/get_by_id', { message_id: id })).body).toMatchObject({
      message: { message_id: id, role: 'agent', agent_type: 'worker' },
    });
    expect((await post(painter, '/messages/get', { session_id })).body).toMatchObject({ count: 1 });
    expect((await post(painter, '/sessions/get_by_id', { session_id })).status).toBe(200);
    const config = { taskId: id, pushNotificationConfig: pushConfig };
    expect((await call(painter, 'tasks/pushNotificationConfig/set', config)).body).toHaveProperty('result');
    expect((await call(painter, 'tasks/pushNotificationConfig/list', { id })).body).toHaveProperty('result');
    expect((await call(painter, 'message/send', params('yes', { taskId: id }))).status).toBe(403);
    expect((await post(painter, `/messages/${id}/resolve`, { resolution: 'confirmed' })).status).toBe(403);
    expect((await post(painter, '/messages/cancel', { message_id: id })).status).toBe(200);
  });

  test('it sends into a session of its own, or one that it names, and into no other', async () => {
    const painter = own('foreign read');
    const { session_id } = await asked();
    const elsewhere = await call(painter, 'message/send', params('hi', { contextId: session_id }));
    expect(elsewhere.body.error).toMatchObject({ code: -32602, data: { code: 'NOT_FOUND' } });
    const contextId = `named-${randomUUID()}`;
    const named = await Promise.all([1, 2].map(() => call(painter, 'message/send', params('hi', { contextId }))));
    expect(named.map(({ body }) => body.result?.contextId)).toEqual([contextId, contextId]);
    const taken = await call(own('own read'), 'message/send', params('hi', { contextId: session_id }));
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
    expect(other.text).not.toContain(first);
  });

  test('it names no session of another in a tool call', async () => {
    const { session_id } = await asked();
    const calling = { tool: 'look_up', target: { agent_type: 'worker' }, session_id };
    expect((await post(own('foreign read'), '/tools/call', calling)).body).toMatchObject({
      error: { code: 'NOT_FOUND' },
    });
    const codeOf = ({ body }: { body: unknown }) => (body as { error: { code: string } }).error.code;
    expect(codeOf(await post(own('own read'), '/tools/call', calling))).toBe('TOOL_NOT_FOUND');
  });

  test('with the scope full it is of its own type all the same', async () => {
    const { instance_id } = await registered();
    const painter = own('foreign full');
    const taking = { instance_id, agent_type: 'painter' };
    expect((await post(painter, '/agents/register', taking)).status).toBe(403);
    expect((await post(painter, '/agents/register', { agent_type: 'worker' })).status).toBe(403);
    expect((await post(painter, '/tools/call', { tool: 'fleet.get_agents', instance_id })).status).toBe(404);
  });
});

describe('the credential that an instance was registered with', () => {
  /** A message that an instance of this credential asks about, and the credential's token that acts for the tenant. */
  async function askedBy(scopes: Scope[]): Promise<{ id: string; token: string }> {
    const credential = await api.credentialOf(api.tenantId, scopes, ['worker']);
    const instance_id = `asker-${++names}`;
    const registration = JSON.stringify({ instance_id, agent_type: 'worker' });
    const headers = {
      'content-type': 'application/json',
      authorization: `Bearer ${await api.tokenAs(credential, 'worker')}`,
    };
    expect((await api.client.raw('/agents/register', registration, headers)).status).toBe(200);
    await api.database.query(
      "UPDATE agents SET status = 'available', mesh_id = 'mesh_test', connection_epoch = 1 WHERE instance_id = $1",
      [instance_id],
    );
    const task = await api.client.send('hi', { metadata: { instance_id }, blocking: false });
    await answerMessage(api, task.id, ASKS);
    return { id: task.id, token: await api.tokenAs(credential, 'credential') };
  }

  test.each([
    [['admin'], 403],
    [['full'], 200],
  ] as const)('with %j answers its questions: %i', async (scopes, status) => {
    for (const way of ['resolve', 'follow-up']) {
      const { id, token } = await askedBy([...scopes]);
      const answer =
        way === 'resolve' ? { resolution: 'confirmed' } : rpc('message/send', params('yes', { taskId: id }));
      const path = way === 'resolve' ? `/messages/${id}/resolve` : '/send';
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
      expect((await api.client.raw(path, JSON.stringify(answer), headers)).status).toBe(status);
    }
  });
});
