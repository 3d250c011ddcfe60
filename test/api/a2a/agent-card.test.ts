import { expect, test } from 'vitest';
import { AgentCard03, AgentCard10 } from '../../../contracts/a2a/agent-card.js';
import { serveApi } from '../served-api.js';

const PATH = '/.well-known/agent-card.json';

const api = await serveApi();
const headers = { authorization: `Bearer ${await api.client.token()}` };
const skills = [{ id: 'paint', name: 'Paint', tags: ['colour', 7], inputModes: ['image/png'] }, { id: 'wash' }];
const agent_card = {
  name: 'x',
  skills: [{ id: 'dry', description: 'Dries', examples: [] }, { id: 7 }, 'nonsense', { id: 'paint' }],
};
await api.client.post('/agents/register', { agent_type: 'painter', skills, agent_card });
await api.client.post('/agents/register', { agent_type: 'odd', agent_card: { skills: 'none' } });

const card = (asked: Record<string, string> = {}) => api.client.raw(PATH, null, asked, 'GET');

const FLEET_SKILLS = [
  { id: 'dry', name: 'dry', description: 'Dries', tags: [] },
  { id: 'paint', name: 'Paint', description: 'Paint', tags: ['colour'], inputModes: ['image/png'] },
  { id: 'wash', name: 'wash', description: 'wash', tags: [] },
];

test.each([undefined, '', '0.3', '0.3.0', '7.0', 'nonsense'])(
  'the card of A2A 0.3 for A2A-Version %j, and nothing of any tenant in it',
  async (version) => {
    const { body, headers: sent } = await card(version === undefined ? {} : { 'a2a-version': version });
    expect(AgentCard03.strict().parse(body)).toMatchObject({
      protocolVersion: '0.3.0',
      url: `${api.baseUrl}/send`,
      preferredTransport: 'JSONRPC',
      supportedInterfaces: ['1.0', '0.3'].map((protocolVersion) => ({ protocolBinding: 'JSONRPC', protocolVersion })),
      supportsAuthenticatedExtendedCard: true,
      security: [{ bearer: [] }],
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      skills: [{ id: 'fleet.route' }],
    });
    expect(sent.get('vary')).toBe('A2A-Version, Authorization');
    expect(sent.get('cache-control')).toBe('public, max-age=60');
    expect(sent.get('last-modified')).toMatch(/GMT$/);
  },
);

test.each(['1.0', '1.0.1'])('the card of A2A %s as ProtoJSON, without a member of another version', async (version) => {
  const { body } = await card({ 'a2a-version': version });
  expect(AgentCard10.strict().parse(body)).toMatchObject({
    securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: 'bearer', bearerFormat: 'JWT' } } },
    capabilities: { extendedAgentCard: true },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    skills: [{ id: 'fleet.route' }],
  });
  expect(JSON.stringify(body)).not.toMatch(/\$case|"kind"|"url":"[^"]*","preferredTransport"/);
});

test('the version may be in the query, where no header names one', async () => {
  const asked = (headers: Record<string, string> = {}) =>
    api.client.raw(`${PATH}?A2A-Version=1.0`, null, headers, 'GET');
  expect((await asked()).body).toEqual((await card({ 'a2a-version': '1.0' })).body);
  expect((await asked({ 'a2a-version': '0.3' })).body).toEqual((await card()).body);
});

test.each(['0.3', '1.0'] as const)('with a token, the skills of its fleet (A2A %s)', async (version) => {
  const own = await card({ ...headers, 'a2a-version': version });
  expect((own.body as { skills: unknown }).skills).toEqual(FLEET_SKILLS);
  expect(own.headers.get('cache-control')).toBe('private, max-age=60');
  const method = version === '1.0' ? 'GetExtendedAgentCard' : 'agent/getAuthenticatedExtendedCard';
  const call = { jsonrpc: '2.0', id: 1, method, params: {} };
  const asked = { ...headers, 'content-type': 'application/json', 'a2a-version': version };
  const extended = await api.client.raw('/send', JSON.stringify(call), asked);
  expect(extended.body).toEqual({ jsonrpc: '2.0', id: 1, result: own.body });
});

test('a body that the caller holds is not sent again, and each caller and version has a body of its own', async () => {
  const asked: Record<string, string>[] = [{}, { 'a2a-version': '1.0' }, headers, { ...headers, 'a2a-version': '1.0' }];
  const etags = await Promise.all(asked.map(async (one) => (await card(one)).headers.get('etag') ?? ''));
  expect(new Set(etags).size).toBe(asked.length);
  for (const [holds, etag] of etags.entries()) {
    for (const [index, one] of asked.entries()) {
      const { status } = await card({ ...one, 'if-none-match': `"other", W/${etag}` });
      expect(status).toBe(index === holds ? 304 : 200);
    }
  }
  expect((await card({ 'if-none-match': '*' })).status).toBe(304);
  expect((await card({ authorization: 'Bearer x' })).status).toBe(401);
});

test('a card says of large fleets the first skills by id, up to 1 MiB, and nothing that a card does not tell', async () => {
  const client = await api.clientOf(await api.otherTenant(), ['full']);
  for (let agent = 10; agent < 30; agent++) {
    const skills = [{ id: `paint-${agent}`, description: 'x'.repeat(60_000), palette: 'y'.repeat(5_000) }];
    expect((await client.post('/agents/register', { agent_type: 'painter', skills })).status).toBe(200);
  }
  const { body } = await card({ authorization: `Bearer ${await client.token()}` });
  const { skills } = body as { skills: { id: string }[] };
  expect(skills.map(({ id }) => id)).toEqual(Array.from({ length: 17 }, (_, agent) => `paint-${agent + 10}`));
  expect(Object.keys(skills[0] ?? {})).toEqual(['id', 'name', 'description', 'tags']);
});
