import type { Duplex } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { ResumeAddress } from '../../sdk/connected/resume-address.js';
import { Agent } from '../../sdk/index.js';
import { MeshServer, refusedUpgrade } from './mesh-server.js';

const OVER_TLS = 'wss://mesh.example/agents/connect?instance_id=a';

test.each([
  ['wss://node-1.example:8443/agents/connect', OVER_TLS, 'wss://node-1.example:8443/agents/connect?instance_id=a'],
  [
    'https://node-1.example/agents/connect?instance_id=b',
    OVER_TLS,
    'wss://node-1.example/agents/connect?instance_id=a',
  ],
  ['ws://node-1.example/agents/connect', OVER_TLS, null],
  ['http://node-1.example/agents/connect', OVER_TLS, null],
  ['ws://127.0.0.1/agents/connect', 'ws://127.0.0.1:1/?instance_id=a', 'ws://127.0.0.1/agents/connect?instance_id=a'],
  ['wss://user:word@node-1.example/', OVER_TLS, null],
  ['file:///etc/passwd', OVER_TLS, null],
  ['node-1', OVER_TLS, null],
  [`wss://node-1.example/${'x'.repeat(3_000)}`, OVER_TLS, null],
  [{ href: 'wss://node-1.example/' }, OVER_TLS, null],
  [undefined, OVER_TLS, null],
])('of resume_url %j, over %s, the agent takes %s', (given, connectedTo, taken) => {
  const address = new ResumeAddress();
  address.set(given, connectedTo);
  expect(address.next()).toBe(taken);
});

test('an address that fails is not tried again; one that refuses the token, once more', () => {
  const address = new ResumeAddress();
  address.set(OVER_TLS, OVER_TLS);
  address.failed({ httpStatus: 503, code: '', message: '' });
  expect(address.next()).toBeNull();
  address.set(OVER_TLS, OVER_TLS);
  for (const next of [OVER_TLS, OVER_TLS, null]) {
    expect(address.next()).toBe(next);
    address.failed({ httpStatus: 401, code: '', message: '' });
  }
});

/** An agent that trusts the authorities of all these servers. */
async function agentOf(mesh: MeshServer, ...others: MeshServer[]): Promise<Agent> {
  const ca = [mesh, ...others].map((server) => server.ca).join('\n');
  const credential = { clientId: 'cred_1', clientSecret: 'secret' };
  const agent = new Agent({ url: mesh.baseUrl, ca, ...credential, type: 'echo', instanceId: 'echo-1' });
  agent.onMessage(async () => 'done');
  onTestFinished(() => agent.close(0));
  await agent.connect();
  return agent;
}

const addressOf = (host: string) => `wss://${host}/agents/connect`;

test('after a lost socket the agent resumes at the node, not at the address of the registration', async () => {
  const [balancer, node] = [await MeshServer.start(), await MeshServer.start()];
  balancer.welcome = { resume_url: addressOf(node.meshAddress) };
  node.welcome = { resumed: true };
  await agentOf(balancer, node);
  balancer.sockets[0]?.terminate();
  expect((await node.frame('hello')).payload).toMatchObject({ instance_id: 'echo-1', resume_token: 'resume-1' });
  expect(balancer.sockets).toHaveLength(1);
});

const REFUSAL = { status: 403, body: { error: 'no', code: 'forbidden' } };

test.each([
  ['cuts the connection', true, (socket: Duplex) => socket.destroy()],
  ['refuses the agent', true, (socket: Duplex) => socket.end(refusedUpgrade(REFUSAL))],
  ['has a certificate that the agent does not trust', false, () => undefined],
])(
  'where the server at the node’s address %s, the agent goes to its usual one',
  async (_what, isTrusted, onUpgrade) => {
    const [balancer, node] = [await MeshServer.start(), await MeshServer.start()];
    node.onUpgrade = (socket) => {
      onUpgrade(socket);
      return isTrusted;
    };
    balancer.welcome = { resume_url: addressOf(node.meshAddress) };
    await agentOf(balancer, ...(isTrusted ? [node] : []));
    balancer.sockets[0]?.terminate();
    expect((await balancer.frame('hello', undefined, 2)).payload.resume_token).toBe('resume-1');
    expect(node.tokensOffered).toHaveLength(isTrusted ? 1 : 0);
  },
);

test('where nothing listens at the node’s address, the agent goes to its usual one', async () => {
  const mesh = await MeshServer.start();
  mesh.welcome = { resume_url: addressOf('127.0.0.1:1') };
  await agentOf(mesh);
  mesh.sockets[0]?.terminate();
  expect((await mesh.frame('hello', undefined, 2)).payload.resume_token).toBe('resume-1');
});
