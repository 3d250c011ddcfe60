import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { AGENT_NOT_READY } from '../../../contracts/errors.js';
import type { MessageHandler } from '../../../sdk/index.js';
import { gate, until } from '../../setup/until.js';
import { agentWith } from '../agents.js';
import { localCertificate } from '../certificate.js';
import { about, newKeys, platform, send, serving, stream } from './serving.js';

const answers = (handler: MessageHandler) => (agent: { onMessage(handler: MessageHandler): unknown }) => {
  agent.onMessage(handler);
};
const got = answers((task) => `got ${task.text}`);

test('fetches the keys of a platform whose certificate is of an authority of its own', async () => {
  const { ca, cert, key } = await localCertificate();
  const { stateOf } = await serving(got, undefined, { ca, tls: { cert, key } });
  expect(await stateOf(send())).toBe('completed');
});

test('a request that comes before the answer to the registration waits for it', async () => {
  let early: Promise<Response> | undefined;
  const fake = await platform(async ({ path, body }) => {
    if (path !== '/agents/register') return undefined;
    const url = String(body.public_url);
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${await fake.token()}` };
    early = fetch(url, { method: 'POST', headers, body: JSON.stringify(send()) });
    // The agent's own server answers this, so the post has been accepted by then.
    await fetch(new URL('/.well-known/agent-card.json', url));
    return undefined;
  });
  const { agent } = agentWith({ url: fake.url, token: 'own' });
  await agent.onMessage(() => 'done').serve();
  expect((await early)?.status).toBe(200);
});

test('refuses tokens that are not for it, and says once for each reason why and what to do', async () => {
  const { fake, post, lines } = await serving(got);
  const bad: [string | undefined, string | null][] = [
    ['missing', null],
    ['malformed', 'x.y.z'],
    ['unknown_key', await fake.token({ key: (await newKeys()).privateKey })],
    ['expired', await fake.token({ expires: '-1 minute' })],
    ['other_agent', await fake.token({ audience: 'shop-2' })],
    [undefined, await fake.token({ tenant: 'ten_2' })], // as the one before
    [undefined, await fake.token({ tenant: null })],
    [undefined, ''],
  ];
  for (const [reason, token] of [...bad, ...bad]) {
    const response = await post(send(), token);
    const said = [response.status, response.headers.get('www-authenticate')];
    expect([reason, ...said]).toEqual([reason, 401, 'Bearer']);
  }
  expect(lines.map(({ reason }) => reason)).toEqual(bad.flatMap(([reason]) => reason ?? []));
  expect(lines.find(({ reason }) => reason === 'expired')?.text).toContain('clocks');
  expect((await post(send())).status).toBe(200);
});

test('without the keys it is not ready, says why, and is once they are there', async () => {
  const { fake, post, lines } = await serving(got);
  const { keys } = fake;
  fake.keys = { page: 'not found' };
  const refused = await post(send());
  expect([refused.status, await refused.json()]).toMatchObject([503, { code: AGENT_NOT_READY }]);
  expect(lines).toMatchObject([{ reason: 'keys_unavailable', text: expect.stringContaining('FLEET_CA_FILE') }]);
  fake.keys = keys;
  expect((await post(send())).status).toBe(200);
});

test('a heartbeat that is under way when the agent stops does not come after the one that says so', async () => {
  const [begun, held] = [gate(), gate()];
  const ended: unknown[] = [];
  const { fake, agent } = await serving(got, async ({ path, body }) => {
    if (path !== '/agents/heartbeat') return undefined;
    if (body.status === 'busy') {
      begun.open();
      await held.promise;
    }
    ended.push(body.status);
    return { ok: true };
  });
  agent.reportStatus('busy');
  await begun.promise;
  const closed = agent.close();
  // A heartbeat beside the one that is held would be here before these.
  for (let trip = 0; trip < 5; trip += 1) await fetch(fake.url);
  held.open();
  await closed;
  expect(ended).toEqual(['available', 'busy', 'draining']);
});

test('a hosted agent that was deregistered finishes what it has and stays away', async () => {
  const [begun, finish] = [gate(), gate()];
  const gone = { status: 404, error: 'The instance was deregistered.', code: 'DEREGISTERED' };
  let isGone = false;
  const { agent, agentUrl, calls, lines, beats, stateOf } = await serving(
    answers(async () => {
      begun.open();
      await finish.promise;
      return 'done';
    }),
    ({ path }) => (isGone && path === '/agents/heartbeat' ? gone : undefined),
  );
  const { closed } = agent;
  const state = stateOf(send());
  await begun.promise;
  const before = beats().length;
  isGone = true;
  agent.reportStatus('busy');
  await until(() => beats().length > before, { what: 'a refused heartbeat' });
  const card = new URL('/.well-known/agent-card.json', agentUrl);
  const isLeaving = async () => (await fetch(card)).headers.get('connection') === 'close';
  await until(isLeaving, { what: 'an agent that stays away' });
  finish.open();
  expect(await state).toBe('completed');
  await expect(closed).rejects.toMatchObject({ name: 'AgentStoppedError', code: 'DEREGISTERED' });
  expect(calls.filter(({ path }) => path === '/agents/register')).toHaveLength(1);
  expect(lines.filter(({ level }) => level === 'warn')).toEqual([]);
});

test('what the platform had sent before it knew that the agent stops is answered', async () => {
  const late: Promise<string>[] = [];
  const { agent, agentUrl, stateOf } = await serving(got, ({ body }) => {
    // Routed before, and on its way while the agent has the answer to this heartbeat already.
    if (body.status === 'draining') late.push(delay(300).then(() => stateOf(send())));
    return undefined;
  });
  await agent.close();
  expect(await Promise.all(late)).toEqual(['completed']);
  await expect(fetch(agentUrl)).rejects.toThrow();
});

test('an outcome whose connection broke is kept until it was asked for', async () => {
  const [begun, finish] = [gate(), gate()];
  const { agent, post, stateOf } = await serving(
    answers(async function* () {
      yield 'half ';
      begun.open();
      await finish.promise;
      yield 'whole';
    }),
  );
  const response = await post(stream());
  await begun.promise;
  await response.body?.cancel();
  expect(await stateOf(about('tasks/get', 'dsp_1'))).toBe('working'); // by then the agent knows that the stream broke
  const closed = agent.close();
  finish.open();
  // As the platform, which looks every few seconds.
  await delay(2_500);
  expect(await stateOf(about('tasks/get', 'dsp_1'))).toBe('completed');
  await closed;
}, 30_000);

test('a port that is taken rejects, and the agent is over; one that listens everywhere says where it can be reached', async () => {
  const { url } = await platform();
  const { agent } = agentWith({ url, token: 'own' });
  const port = Number(new URL(url).port);
  await expect(agent.serve({ port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  await expect(agent.closed).rejects.toMatchObject({ code: 'EADDRINUSE' });
  const { agent: everywhere } = agentWith({ url, token: 'own' });
  await expect(everywhere.serve({ host: '0.0.0.0' })).rejects.toThrow('publicUrl');
});
