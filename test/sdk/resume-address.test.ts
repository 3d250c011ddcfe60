import type { Duplex } from 'node:stream';
import { expect, test } from 'vitest';
import { ResumeAddress } from '../../sdk/connected/resume-address.js';
import { agentWith } from './agents.js';
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

/** An agent on a balancer that names this address to resume at; it trusts the authorities of all these servers. */
async function agentOn(resumeAddress: string, ...nodes: MeshServer[]): Promise<MeshServer> {
  const balancer = await MeshServer.start();
  balancer.welcome = { resume_url: `wss://${resumeAddress}/agents/connect` };
  const ca = [balancer, ...nodes].map((server) => server.ca).join('\n');
  await agentWith({ url: balancer.baseUrl, ca }).agent.connect();
  return balancer;
}

test('after a lost socket the agent resumes at the node, not at the address of the registration', async () => {
  const node = await MeshServer.start();
  node.welcome = { resumed: true };
  const balancer = await agentOn(node.meshAddress, node);
  balancer.sockets[0]?.terminate();
  expect((await node.frame('hello')).payload).toMatchObject({ instance_id: 'shop-1', resume_token: 'resume-1' });
  expect(balancer.sockets).toHaveLength(1);
});

const REFUSAL = { status: 403, body: { error: 'no', code: 'forbidden' } };

test.each<[string, number, ((socket: Duplex) => unknown)?]>([
  ['the server there cuts the connection', 1, (socket) => socket.destroy()],
  ['the server there refuses the agent', 1, (socket) => socket.end(refusedUpgrade(REFUSAL))],
  ['the server there has a certificate that the agent does not trust', 0],
  ['nothing listens there', 0],
])('an agent that was named an address goes to its usual one where %s', async (what, offered, onUpgrade) => {
  const node = await MeshServer.start();
  if (onUpgrade) node.onUpgrade = (socket) => onUpgrade(socket) !== undefined;
  const address = what === 'nothing listens there' ? '127.0.0.1:1' : node.meshAddress;
  const balancer = await agentOn(address, ...(onUpgrade ? [node] : []));
  balancer.sockets[0]?.terminate();
  expect((await balancer.frame('hello', undefined, 2)).payload.resume_token).toBe('resume-1');
  expect(node.tokensOffered).toHaveLength(offered);
});
