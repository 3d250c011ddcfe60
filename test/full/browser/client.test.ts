import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { answerMessage, COMPLETED, joinOnRecord } from '../../api/moving.js';
import { serveApi } from '../../api/served-api.js';
import { httpServer } from '../../runtime/loopback-server.js';
import { startChromium } from '../../setup/chromium.js';

const root = join(import.meta.dirname, '..', '..', '..');
const bundle = join(mkdtempSync(join(inject('runDir'), 'browser-')), 'index.js');
execFileSync(process.execPath, [join(root, 'scripts', 'publish', 'browser-bundle.mjs'), bundle]);

/** Pages of the user's own server: the SDK's client, which gets short-lived tokens from there. */
let token = async () => '';
const { port } = await httpServer(async (request, response) => {
  const [type, body] =
    request.url === '/sdk.js'
      ? ['text/javascript', readFileSync(bundle)]
      : request.url === '/token'
        ? ['text/plain', await token()]
        : ['text/html', '<!doctype html><title>A page</title>'];
  response.setHeader('content-type', type).end(body);
});
const [ORIGIN, OTHER] = [`http://127.0.0.1:${port}`, `http://localhost:${port}`];

const api = await serveApi({ corsOrigins: [ORIGIN] });
await joinOnRecord(api, 'worker-1');
const browser = await startChromium();

/** Runs a script in a page; `client` is there. */
async function inPage<T>(origin: string, script: string): Promise<T> {
  const page = await browser.newPage();
  await page.goto(origin);
  const code = `(async () => {
    const sdk = await import('/sdk.js');
    const token = async () => (await fetch('/token')).text();
    const client = new sdk.FleetClient({ url: ${JSON.stringify(api.baseUrl)}, token });
    ${script}
  })()`;
  return (await page.evaluate(code)) as T;
}

test('a page sends a message with a short-lived token, and streams the answer', async () => {
  const { client_id } = await api.credentialOf(api.tenantId, ['read']);
  const claims = { tenant_id: api.tenantId, agent_type: 'credential', scopes: ['read' as const], sub: client_id };
  token = () => api.tokens.issueAccessToken({ ...claims, credential_id: client_id }, 60);
  const sent = await inPage<{ id: string; total: number; refused: string }>(
    ORIGIN,
    `const task = await client.send('hi', { agentType: 'worker', blocking: false });
    const { sessions } = await client.sessions.get({ pageSize: 1 });
    const refused = await client.credentials.get().catch((error) => error.code);
    return { id: task.id, total: sessions.length, refused };`,
  );
  expect(sent).toEqual({ id: expect.stringMatching(/^msg_/), total: 1, refused: 'forbidden' });
  const streaming = inPage<string>(
    ORIGIN,
    `let text = '';
    for await (const piece of sdk.textStream(client.tasks.resubscribe('${sent.id}'))) text += piece;
    return text;`,
  );
  const artifacts = [{ artifactId: 'a', parts: [{ kind: 'text' as const, text: 'from a browser' }] }];
  await answerMessage(api, sent.id, { ...COMPLETED, artifacts });
  expect(await streaming).toBe('from a browser');
});

test('a page of another origin is refused by the browser, and told what to look at', async () => {
  const message = await inPage<string>(OTHER, 'return client.sessions.get({}).catch((error) => error.message);');
  expect(message).toContain(`is ${OTHER} one of the platform's CORS_ORIGINS?`);
});
