import { expect, onTestFinished, test, vi } from 'vitest';
import { Agent, type MessageHandler } from '../../sdk/index.js';
import { MeshServer, type WelcomeChoice } from './mesh-server.js';

async function connect(
  onMessage: MessageHandler,
  prepare: (mesh: MeshServer) => void,
): Promise<{ mesh: MeshServer; agent: Agent }> {
  const mesh = await MeshServer.start();
  prepare(mesh);
  const credential = { clientId: 'cred_1', clientSecret: 'secret' };
  const options = { url: mesh.baseUrl, ca: mesh.ca, ...credential, type: 'echo', instanceId: 'echo-1' };
  const agent = new Agent(options).onMessage(onMessage);
  onTestFinished(() => agent.close(0).catch(() => undefined)); // a test may have ended it with an error
  await agent.connect();
  return { mesh, agent };
}

const takesTokens: WelcomeChoice = { reauth: true };

test('renews its token on the living socket, again and again', async () => {
  const { mesh } = await connect(
    async () => 'done',
    (server) => {
      server.tokenLifetimeSeconds = 1;
      server.welcome = takesTokens;
    },
  );
  expect((await mesh.frame('reauth')).payload).toEqual({ token: 'token-2' });
  expect((await mesh.frame('reauth', undefined, 2)).payload).toEqual({ token: 'token-3' });
  expect(mesh.sockets).toHaveLength(1);
  expect(mesh.tokensOffered).toEqual(['token-1']);
});

test('does not wait for tool calls under way', async () => {
  const { mesh, agent } = await connect(
    async () => 'done',
    (server) => {
      server.tokenLifetimeSeconds = 1;
      server.welcome = takesTokens;
    },
  );
  const answer = agent.callTool('slow');
  const call = await mesh.frame('tool_call');
  await mesh.frame('reauth', undefined, 2);
  mesh.send('tool_result', { ok: true, result: 'late' }, { inReplyTo: call.id });
  expect(await answer).toBe('late');
});

test('reconnects with the new token when the mesh does not take it', async () => {
  const { mesh } = await connect(
    async () => 'done',
    (server) => {
      server.tokenLifetimeSeconds = 1;
      server.welcome = takesTokens;
      server.reauthError = 'REAUTH_REFUSED';
    },
  );
  mesh.welcome = { resumed: true };
  expect((await mesh.frame('hello', undefined, 2)).payload.resume_token).toBe('resume-1');
  expect(mesh.tokensOffered.slice(0, 2)).toEqual(['token-1', 'token-2']);
  expect(mesh.of('reauth')).toHaveLength(1);
});

test('sends no reauth to a mesh that does not announce it', async () => {
  const { mesh } = await connect(
    async () => 'done',
    (server) => {
      server.tokenLifetimeSeconds = 1;
    },
  );
  await vi.waitFor(() => expect(mesh.sockets.length).toBeGreaterThan(1), { timeout: 10_000 });
  expect(mesh.of('reauth')).toEqual([]);
});
