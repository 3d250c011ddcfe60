import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { onTestFinished } from 'vitest';
import { Agent, type AgentOptions } from '../../../sdk/index.js';

/** A request to the platform. */
export type Call = { path: string; body: Record<string, unknown>; traceparent: string | undefined };

export interface RpcAnswer {
  result: { status: { state: string; message?: object }; artifacts: { parts: object[] }[] };
  error: { code: number };
}

/** What an agent needs of a platform: keys, and answers that the test writes. */
async function platform(answer: (call: Call) => object = () => ({ ok: true })) {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519' });
  const jwk = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'EdDSA', use: 'sig' };
  const calls: Call[] = [];
  const reply = async (request: IncomingMessage) => {
    if (request.method === 'GET') return { keys: [jwk] };
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const call = {
      path: request.url ?? '',
      body: JSON.parse(text),
      traceparent: request.headers.traceparent as string,
    };
    calls.push(call);
    return answer(call);
  };
  const server = createServer((request, response) => {
    void reply(request).then((body) => {
      response.statusCode = (body as { status?: number }).status ?? 200;
      response.end(JSON.stringify(body));
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const token = (audience = 'shop-1', expires = '60s', key = privateKey, claims: JWTPayload = { tenant_id: 'ten_1' }) =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: 'EdDSA', kid: 'k1' })
      .setAudience(audience)
      .setIssuedAt()
      .setExpirationTime(expires)
      .sign(key);
  return { url, token, calls, privateKey };
}

/** A hosted agent, and a platform that sends it dispatches. */
export async function serving(
  prepare: (agent: Agent) => void,
  answer?: (call: Call) => object,
  options: Partial<AgentOptions> = {},
) {
  const fakePlatform = await platform(answer);
  const agent = new Agent({
    url: fakePlatform.url,
    token: 'agents-own',
    type: 'shop',
    drainOnSignals: false,
    ...options,
  });
  prepare(agent);
  const url = await agent.serve({ registered: { tenantId: 'ten_1', instanceId: 'shop-1' } });
  onTestFinished(() => agent.close(0));
  const post = async (body: unknown, bearer?: string, signal?: AbortSignal) =>
    fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${bearer ?? (await fakePlatform.token())}`,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal && { signal }),
    });
  const ask = async (body: unknown) => (await (await post(body)).json()) as RpcAnswer;
  return { ...fakePlatform, agent, agentUrl: url, post, ask };
}

const PLACE = { session_id: 'ses_1', tenant_id: 'ten_1', message_id: 'msg_1' };
export const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

export function dispatch(
  method: string,
  text: string,
  more: { id?: string; metadata?: object; parts?: object[]; deadlineMs?: number } = {},
) {
  const message = { kind: 'message', messageId: 'm1', role: 'user', parts: more.parts ?? [{ kind: 'text', text }] };
  return {
    jsonrpc: '2.0',
    id: 'frame-1',
    method,
    params: { message, ...(more.metadata && { metadata: more.metadata }) },
    dispatch_id: more.id ?? 'dsp_1',
    deadline_ms: more.deadlineMs ?? 10_000,
    attempt: 1,
    idempotency_key: 'dsp_1',
    session_context: { ...PLACE, propagation_headers: { traceparent: TRACE } },
  };
}

export const about = (method: string, id: string) => ({ jsonrpc: '2.0', id: 2, method, params: { id } });
