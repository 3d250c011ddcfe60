import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { ErrorBody } from '../../../contracts/primitives.js';
import type { MeshNodeUnderTest } from '../mesh-fixture.js';
import { database, fixture, useMesh } from '../use-mesh.js';

useMesh('mine');

interface Refusal {
  status: number;
  code: string;
  headers: Record<string, unknown>;
}

/** Sends an upgrade request and reads the answer, which must be a refusal with the error body. */
function upgrade(node: MeshNodeUnderTest, options: RequestOptions & { secure?: boolean }): Promise<Refusal> {
  const { secure = true, headers, ...rest } = options;
  const request = (secure ? httpsRequest : httpRequest)({
    host: '127.0.0.1',
    port: node.port,
    rejectUnauthorized: false,
    headers: {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': randomBytes(16).toString('base64'),
      'sec-websocket-protocol': 'service.v1',
      ...headers,
    },
    ...rest,
  });
  return new Promise((resolve, reject) => {
    request.once('upgrade', (_response, socket) => {
      socket.destroy();
      reject(new Error('it was upgraded'));
    });
    request.once('error', reject);
    request.once('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const body = ErrorBody.parse(JSON.parse(Buffer.concat(chunks).toString()));
        expect(response.headers['x-request-id']).toBe(body.request_id);
        resolve({ status: response.statusCode ?? 0, code: body.code, headers: response.headers });
      });
    });
    request.end();
  });
}

const path = (instance: string) => `/agents/connect?instance_id=${instance}`;
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const refusalOf = async (node: MeshNodeUnderTest, token: string, instance = 'mine') => {
  const { status, code } = await upgrade(node, { path: path(instance), headers: bearer(token) });
  return [status, code];
};

/** Opens a WebSocket; closed with the test. */
async function opened(node: MeshNodeUnderTest, token: string, protocols = ['service.v1']): Promise<WebSocket> {
  const options = { headers: bearer(token), rejectUnauthorized: false };
  const ws = new WebSocket(`wss://127.0.0.1:${node.port}${path('mine')}`, protocols, options);
  onTestFinished(() => ws.terminate());
  await new Promise((resolve, reject) => ws.once('open', resolve).once('error', reject));
  return ws;
}

describe('the handshake', () => {
  it('checks in the documented order: what is named first is answered first', async () => {
    const node = await fixture.node();
    await fixture.register('hosted-1', { deployment_mode: 'hosted' });
    const { tenantId: tenant_id } = await fixture.newTenant();
    await fixture.register('theirs', { tenant_id });
    const token = await fixture.token();
    const reader = await fixture.token(3_600, { scopes: ['read'] });
    const noProtocol = { 'sec-websocket-protocol': 'service.v2, other' };
    const cases: [Parameters<typeof upgrade>[1], number, string][] = [
      [{ path: '/agents/connect', secure: false }, 426, 'UPGRADE_REQUIRED'],
      [{ path: '/agents/connect', secure: false, headers: { 'x-forwarded-proto': 'https' } }, 426, 'UPGRADE_REQUIRED'],
      [{ path: '/elsewhere?instance_id=mine' }, 404, 'NOT_FOUND'],
      [{ path: '/agents/connect', headers: noProtocol }, 400, 'MISSING_INSTANCE_ID'],
      [{ path: path(''), headers: noProtocol }, 400, 'MISSING_INSTANCE_ID'],
      [{ path: path('mine'), headers: noProtocol }, 400, 'UNSUPPORTED_SUBPROTOCOL'],
      [{ path: path('nobody') }, 401, 'UNAUTHORIZED'],
      [{ path: path('nobody'), headers: bearer('garbage') }, 401, 'UNAUTHORIZED'],
      [{ path: path('nobody'), headers: { authorization: `Basic ${token}` } }, 401, 'UNAUTHORIZED'],
      [{ path: path('nobody'), headers: { cookie: `token=${token}` } }, 401, 'UNAUTHORIZED'],
      [{ path: path('theirs'), headers: bearer(token) }, 403, 'TENANT_MISMATCH'],
      [{ path: path('nobody'), headers: bearer(token) }, 404, 'INSTANCE_NOT_FOUND'],
      [{ path: path('%00..%2F'), headers: bearer(token) }, 404, 'INSTANCE_NOT_FOUND'],
      [{ path: path('hosted-1'), headers: bearer(token) }, 409, 'DEPLOYMENT_MODE_MISMATCH'],
      [{ path: path('mine'), headers: bearer(reader) }, 403, 'forbidden'],
      [{ path: path('mine'), headers: { ...bearer(token), 'sec-websocket-key': 'short' } }, 400, 'BAD_REQUEST'],
      [{ path: path('mine'), headers: { ...bearer(token), 'sec-websocket-version': '8' } }, 400, 'BAD_REQUEST'],
      [{ path: path('mine'), headers: { ...bearer(token), upgrade: 'h2c' } }, 426, 'UPGRADE_REQUIRED'],
    ];
    for (const [options, status, code] of cases) {
      const answer = await upgrade(node, options);
      expect([options.path, answer.status, answer.code]).toEqual([options.path, status, code]);
    }
  });

  it('refuses an agent whose type may not join, and the hello of one that may not join any more', async () => {
    const node = await fixture.node();
    const agent = await node.socket('mine');
    const allowed = "INSERT INTO agent_types SELECT tenant_id, 'other', true, 'x' FROM agents WHERE tenant_id = $1";
    await database.query(allowed, [fixture.tenantId]);
    expect(await refusalOf(node, await fixture.token())).toEqual([403, 'forbidden']);
    agent.send('hello', { instance_id: 'mine' });
    expect((await agent.closed).code).toBe(1008);
  });

  it('refuses an expired token, and one of a revoked credential', async () => {
    const node = await fixture.node();
    const token = await fixture.token();
    expect(await refusalOf(node, await fixture.token(-1))).toEqual([401, 'UNAUTHORIZED']);
    await database.query('UPDATE credentials SET revoked_at = now() WHERE credential_id = $1', [fixture.credentialId]);
    expect(await refusalOf(node, token)).toEqual([401, 'UNAUTHORIZED']);
  });

  it('takes a token of the type whatever its scope; one of another type finds nothing, one of no agent is refused', async () => {
    const node = await fixture.node();
    const foreign = await fixture.token(60, { agent_type: 'painter' });
    expect(await refusalOf(node, foreign)).toEqual([404, 'INSTANCE_NOT_FOUND']);
    await opened(node, await fixture.token(60, { agent_type: 'worker', scopes: ['read'] }));
    await fixture.setAgent('mine', "agent_type = 'credential'");
    const ofNone = await fixture.token(60, { scopes: ['read'] });
    expect(await refusalOf(node, ofNone)).toEqual([403, 'forbidden']);
    // One that is limited learns of no instance whether it is there.
    const limited = await fixture.token(60, { session_id: 'any' });
    expect(await refusalOf(node, limited, 'nobody')).toEqual([403, 'forbidden']);
  });

  it('tells an instance that was deregistered to stay away, and one that was silent for too long to register', async () => {
    const node = await fixture.node();
    const { tenantId: elsewhere } = await fixture.newTenant();
    const gone = { unwanted: 'explicit', silent: 'inactivity', earlier: null };
    for (const [instance, deregistration_cause] of Object.entries(gone)) {
      await fixture.register(instance, { deregistered_at: new Date(), deregistration_cause });
      await fixture.register(instance, { tenant_id: elsewhere }); // no concern of this tenant's
    }
    const token = await fixture.token();
    const foreign = await fixture.token(60, { agent_type: 'painter' });
    const cases: [string, string, string][] = [
      ['unwanted', token, 'DEREGISTERED'],
      ['silent', token, 'INSTANCE_NOT_FOUND'],
      ['earlier', token, 'INSTANCE_NOT_FOUND'],
      ['unwanted', foreign, 'INSTANCE_NOT_FOUND'],
    ];
    for (const [instance, by, code] of cases) {
      expect([instance, (await refusalOf(node, by, instance))[1]]).toEqual([instance, code]);
    }
  });

  it('answers 503 to a connection of before the stop, and accepts no other', async () => {
    const node = await fixture.node();
    const early = connectTls({ host: '127.0.0.1', port: node.port, rejectUnauthorized: false });
    await once(early, 'secureConnect');
    await node.server.drain(0);
    const lines = [
      'GET /agents/connect?instance_id=mine HTTP/1.1',
      'Host: x',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}`,
      'Sec-WebSocket-Protocol: service.v1',
      `Authorization: Bearer ${await fixture.token()}`,
    ];
    early.write(`${lines.join('\r\n')}\r\n\r\n`);
    expect(await text(early)).toMatch(/^HTTP\/1\.1 503 /);
    await expect(node.socket('mine')).rejects.toThrow('ECONNREFUSED');
  });

  it('echoes the subprotocol among several offered', async () => {
    const ws = await opened(await fixture.node(), await fixture.token(), ['other', 'service.v1']);
    expect(ws.protocol).toBe('service.v1');
    expect(ws.extensions).toBe('');
  });

  it('takes plain HTTP from a trusted proxy that says it came over TLS, and from nobody else', async () => {
    const node = await fixture.node({ environment: { TRUST_PROXY_CIDRS: '127.0.0.0/8,::1/128' } });
    const https = { 'x-forwarded-proto': 'https' };
    const trusted = { path: '/agents/connect', secure: false, headers: https };
    expect((await upgrade(node, trusted)).code).toBe('MISSING_INSTANCE_ID');
    const http = { path: '/agents/connect', secure: false, headers: { 'x-forwarded-proto': 'http' } };
    expect((await upgrade(node, http)).code).toBe('UPGRADE_REQUIRED');
    const behind = await fixture.node({ tls: undefined, environment: { TRUST_PROXY_CIDRS: '10.0.0.0/8' } });
    expect((await upgrade(behind, trusted)).code).toBe('UPGRADE_REQUIRED');
  });
});

/** The head of the answer to a request, however it is written. */
async function headOf(node: MeshNodeUnderTest, request: string): Promise<string> {
  const socket = connectTls({ host: '127.0.0.1', port: node.port, rejectUnauthorized: false });
  socket.write(`${request}\r\nConnection: ${request.includes('Upgrade:') ? 'Upgrade' : 'close'}\r\n\r\n`);
  return (await text(socket)).split('\r\n\r\n', 1)[0] ?? '';
}

describe('the port of the mesh', () => {
  it('answers plain HTTP with 426 and closes', async () => {
    const node = await fixture.node();
    const answer = await fetch(`http://127.0.0.1:${node.port}/send`, { method: 'POST', body: '{}' });
    expect(answer.status).toBe(426);
    expect(answer.headers.get('connection')).toBe('close');
    expect(ErrorBody.parse(await answer.json()).code).toBe('UPGRADE_REQUIRED');
  });

  it('passes the shared paths to the HTTP face, and knows no others', async () => {
    const seen: string[] = [];
    const node = await fixture.node({
      handler: (request, response) => {
        seen.push(request.url ?? '');
        response.end('{}');
      },
    });
    const ask = (path: string) =>
      new Promise<number>((resolve, reject) => {
        const options = { host: '127.0.0.1', port: node.port, path, rejectUnauthorized: false };
        httpsRequest(options, (response) => resolve(response.resume().statusCode ?? 0))
          .once('error', reject)
          .end();
      });
    expect(await ask('/send?x=1')).toBe(200);
    expect(await ask('/sessions/interrupt')).toBe(200);
    expect(await ask('/.well-known/agent-card.json')).toBe(200);
    expect(await ask('/health')).toBe(200);
    // Balancers that end TLS ask without it, and name no protocol.
    expect((await fetch(`http://127.0.0.1:${node.port}/health?ready=full`)).status).toBe(200);
    expect(await ask('/agents/get')).toBe(404);
    expect(await ask('/agents/connect')).toBe(426);
    const known = ['/send?x=1', '/sessions/interrupt', '/.well-known/agent-card.json'];
    expect(seen).toEqual([...known, '/health', '/health?ready=full']);
  });

  it('tells a page of a named origin why, and no other', async () => {
    const origin = 'https://app.example.com';
    const node = await fixture.node({ environment: { CORS_ORIGINS: origin } });
    const ask = (request: string, from = origin) =>
      headOf(node, `${request}\r\nHost: x\r\nOrigin: ${from}\r\nAccess-Control-Request-Method: POST`);
    const cases: [request: string, status: number][] = [
      ['POST /agents/get HTTP/1.1', 404],
      ['GET /agents/connect HTTP/1.1', 426],
      ['OPTIONS /agents/get HTTP/1.1', 204],
      ['POST /send HTTP/1.1\r\nno header', 400],
      [`POST /send HTTP/1.1\r\nAuthorization: ${'x'.repeat(20_000)}`, 431],
    ];
    for (const [request, status] of cases) {
      const head = await ask(request);
      expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      expect(head).toContain(`access-control-allow-origin: ${origin}\r\n`);
      expect(await ask(request, 'https://elsewhere.example')).not.toContain('access-control-allow-origin');
    }
    const plain = await fetch(`http://127.0.0.1:${node.port}/send`, { method: 'POST', headers: { origin } });
    expect([plain.status, plain.headers.get('access-control-allow-origin')]).toEqual([426, origin]);
  });

  it('survives garbage', async () => {
    const node = await fixture.node();
    const garbage = [
      Buffer.from([0x16, 3, 1, 255, 255, 0, 1, 2]),
      Buffer.from('\0\0\0\0'),
      Buffer.from('GET http://[ HTTP/1.1\r\n\r\n'),
    ];
    for (const bytes of garbage) {
      const socket = connect(node.port, '127.0.0.1');
      socket.on('error', () => undefined);
      const closed = new Promise((resolve) => socket.once('close', resolve));
      socket.end(bytes);
      socket.resume();
      await closed;
    }
    const broken = 'GET //[?instance_id=%E0%A4%A HTTP/1.1\r\nHost: x\r\nUpgrade: websocket';
    expect(await headOf(node, broken)).toMatch(/^HTTP\/1.1 404 /);
    await node.join('mine');
  });
});
