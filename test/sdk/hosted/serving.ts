import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import type { Agent, AgentOptions } from '../../../sdk/index.js';
import { agentWith } from '../agents.js';
import { answering, Reply, type SeenRequest } from '../answering.js';

/** A request to the platform. */
export type Call = { path: string; body: Record<string, unknown>; traceparent: string | undefined };

export interface RpcAnswer {
  result: { status: { state: string; message?: object }; artifacts: { parts: object[] }[] };
  error: { code: number };
}

type SigningKey = Awaited<ReturnType<typeof newKeys>>['privateKey'];

interface TokenClaims {
  audience?: string;
  expires?: string;
  /** None for null. */
  tenant?: string | null;
  key?: SigningKey;
}

interface FakePlatform {
  url: string;
  /** What `/.well-known/jwks.json` answers. */
  keys: object;
  calls: Call[];
  /** A token as the platform gives it to the agent. */
  token(claims?: TokenClaims): Promise<string>;
}

export const newKeys = () => generateKeyPair('EdDSA', { crv: 'Ed25519' });

/**
 * What a hosted agent needs of a platform: keys, its registration, and answers that the test writes.
 * @param answer to calls; the registration is answered where it gives nothing. A `status` in it is that of the response
 * @param tls of an authority of its own
 */
export async function platform(
  answer: (call: Call) => object | undefined | Promise<object | undefined> = () => undefined,
  tls?: { cert: string; key: string },
): Promise<FakePlatform> {
  const { publicKey, privateKey } = await newKeys();
  const jwk = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'EdDSA', use: 'sig' };
  const token = ({ audience = 'shop-1', expires = '60s', tenant = 'ten_1', key = privateKey }: TokenClaims = {}) =>
    new SignJWT({ ...(tenant !== null && { tenant_id: tenant }) })
      .setProtectedHeader({ alg: 'EdDSA', kid: 'k1' })
      .setAudience(audience)
      .setIssuedAt()
      .setExpirationTime(expires)
      .sign(key);
  const fake: FakePlatform = { url: '', keys: { keys: [jwk] }, calls: [], token };
  const reply = async ({ method, path, body, traceparent }: SeenRequest) => {
    if (method === 'GET') return fake.keys;
    const call = { path, body, traceparent };
    fake.calls.push(call);
    const given = (await answer(call)) ?? (path === '/agents/register' ? registered(fake.url, body) : { ok: true });
    return new Reply(given, given as { status?: number });
  };
  fake.url = (await answering(reply, tls)).url;
  return fake;
}

/** As much of the answer as agents read. */
function registered(url: string, { instance_id }: Call['body']) {
  const jwks_url = `${url}/.well-known/jwks.json`;
  return { ok: true, tenant_id: 'ten_1', instance_id, deployment_mode: 'hosted', connect_url: null, jwks_url };
}

/** A hosted agent, and a platform that sends it dispatches. */
export async function serving(
  prepare: (agent: Agent) => void,
  answer?: (call: Call) => object | undefined | Promise<object | undefined>,
  { tls, ...options }: Partial<AgentOptions> & { tls?: { cert: string; key: string } } = {},
) {
  const fake = await platform(answer, tls);
  const { agent, lines } = agentWith({ url: fake.url, token: 'agents-own', ...options });
  prepare(agent);
  const agentUrl = await agent.serve();
  /** @param bearer null for no token at all */
  const post = async (body: unknown, bearer?: string | null, signal?: AbortSignal) => {
    const token = bearer === undefined ? await fake.token() : bearer;
    return fetch(agentUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(token !== null && { authorization: `Bearer ${token}` }) },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal && { signal }),
    });
  };
  const ask = async (body: unknown) => (await (await post(body)).json()) as RpcAnswer;
  const stateOf = async (body: unknown) => (await ask(body)).result.status.state;
  const beats = () => fake.calls.filter(({ path }) => path === '/agents/heartbeat');
  return { fake, calls: fake.calls, agent, lines, agentUrl, post, ask, stateOf, beats };
}

const PLACE = { session_id: 'ses_1', tenant_id: 'ten_1', message_id: 'msg_1' };
export const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

export function dispatch(
  method: string,
  said: string,
  more: { id?: string; skill?: string; metadata?: object; parts?: object[]; deadlineMs?: number } = {},
) {
  const parts = more.parts ?? [{ kind: 'text', text: said }];
  const message = { kind: 'message', messageId: 'm1', role: 'user', parts };
  return {
    jsonrpc: '2.0',
    id: 'frame-1',
    method,
    params: { message, ...(more.metadata && { metadata: more.metadata }) },
    dispatch_id: more.id ?? 'dsp_1',
    ...(more.skill && { skill_id: more.skill }),
    deadline_ms: more.deadlineMs ?? 10_000,
    attempt: 1,
    idempotency_key: 'dsp_1',
    session_context: { ...PLACE, propagation_headers: { traceparent: TRACE } },
  };
}

export const send = (said = 'tea', more: Parameters<typeof dispatch>[2] = {}) => dispatch('message/send', said, more);
export const stream = (said = 'tea', more: Parameters<typeof dispatch>[2] = {}) =>
  dispatch('message/stream', said, more);

/** A call of a tool of the agent. */
export function toolCall(tool: string, args: object) {
  const caller = { agent_type: 'clerk' };
  const tool_call = { tool, dispatch_id: 'call_1', caller, deadline_ms: 1_000, idempotency_key: 'k' };
  const parts = [{ kind: 'data', data: { tool, arguments: args } }];
  return send('', { id: 'call_1', metadata: { tool_call }, parts });
}

export const about = (method: string, id: string) => ({ jsonrpc: '2.0', id: 2, method, params: { id } });
