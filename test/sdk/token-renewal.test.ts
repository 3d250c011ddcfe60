import { expect, test, vi } from 'vitest';
import { until } from '../setup/until.js';
import { agentOn, joined } from './agents.js';
import type { MeshServer, WelcomeChoice } from './mesh-server.js';

/** An agent whose tokens live that long, on a mesh that takes new ones on a living socket or not. */
function shortLived(seconds: number, welcome: WelcomeChoice = {}, reauthError?: string) {
  const change = (mesh: MeshServer) => {
    Object.assign(mesh, { tokenLifetimeSeconds: seconds, welcome, reauthError });
  };
  return joined((agent) => agent.onMessage(() => 'done'), {}, change);
}

test('renews its token on the living socket, again and again, whatever calls are under way', async () => {
  const { mesh, agent } = await shortLived(1, { reauth: true });
  const answer = agent.callTool('slow');
  const call = await mesh.frame('tool_call');
  expect((await mesh.frame('reauth')).payload).toEqual({ token: 'token-2' });
  expect((await mesh.frame('reauth', undefined, 2)).payload).toEqual({ token: 'token-3' });
  mesh.send('tool_result', { ok: true, result: 'late' }, { inReplyTo: call.id });
  expect(await answer).toBe('late');
  expect(mesh.sockets).toHaveLength(1);
  expect(mesh.tokensOffered).toEqual(['token-1']);
});

test.each<[string, WelcomeChoice, string | undefined, number]>([
  ['does not take it', { reauth: true }, 'REAUTH_REFUSED', 1],
  ['does not announce that it takes one', {}, undefined, 0],
])('reconnects with the new token and resumes when the mesh %s', async (_what, welcome, error, asked) => {
  const { mesh } = await shortLived(1, welcome, error);
  mesh.welcome = { resumed: true };
  expect((await mesh.frame('hello', undefined, 2)).payload.resume_token).toBe('resume-1');
  expect(mesh.tokensOffered.slice(0, 2)).toEqual(['token-1', 'token-2']);
  expect(mesh.of('reauth')).toHaveLength(asked);
});

test('a new connection for a new token waits for tool calls under way', async () => {
  const { mesh, agent } = await shortLived(2);
  const answer = agent.callTool('slow');
  const call = await mesh.frame('tool_call');
  const { mesh: other } = await shortLived(2);
  await vi.waitFor(() => expect(other.sockets).toHaveLength(2), { timeout: 10_000 }); // so the first one's time has come too
  expect(mesh.sockets).toHaveLength(1);
  mesh.send('tool_result', { ok: true, result: 'late' }, { inReplyTo: call.id });
  expect(await answer).toBe('late');
  await vi.waitFor(() => expect(mesh.sockets).toHaveLength(2), { timeout: 10_000 });
});

test('without a new token the connection stays until there is one', async () => {
  const { mesh, lines } = await shortLived(1);
  mesh.refusals.set('/auth/get_token', { status: 503, body: { error: 'Try again.', code: 'SERVICE_UNAVAILABLE' } });
  await until(() => lines.length > 0, { what: 'a warning' });
  expect(lines).toMatchObject([{ level: 'warn', code: 'SERVICE_UNAVAILABLE' }]);
  expect(mesh.sockets.map((socket) => socket.readyState)).toEqual([1]);
  mesh.refusals.clear();
  mesh.welcome = { resumed: true };
  expect((await mesh.frame('hello', undefined, 2)).payload.resume_token).toBe('resume-1');
});

test('gets a new token when the handshake answers 401', async () => {
  const { mesh, agent } = await agentOn((server) => server.refusedTokens.add('token-1'));
  await agent.connect();
  expect(mesh.tokensOffered).toEqual(['token-1', 'token-2']);
});
