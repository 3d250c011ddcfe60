import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { freePort } from '../../../embedded/free-port.js';
import { answerMessage, COMPLETED } from '../../api/moving.js';
import { serveApi } from '../../api/served-api.js';
import { startChromium } from '../../setup/chromium.js';
import { insertAgent } from '../../setup/core.js';
import { documentedBlock } from '../../setup/documented-block.js';
import { installPackages, pythonWithPackage } from '../../setup/python-package.js';
import { until } from '../../setup/until.js';

const root = join(import.meta.dirname, '..', '..', '..');
const folder = mkdtempSync(join(inject('runDir'), 'end-users-'));
const port = await freePort();
const origin = `http://localhost:${port}`;
const api = await serveApi({ corsOrigins: [origin] });
await api.database.query("INSERT INTO mesh_nodes (mesh_id) VALUES ('mesh_test')");
const agent = { instance_id: 'concierge-1', agent_type: 'concierge', mesh_id: 'mesh_test', connection_epoch: 1 };
await insertAgent(api.database, { tenant_id: api.tenantId, ...agent });
const browser = await startChromium();

/** The packages, and the files of the page. */
function install(): void {
  const sdk = join(folder, 'node_modules', 'agent-fleet-sdk');
  mkdirSync(sdk, { recursive: true });
  const exports = { '.': './index.js', './browser': './browser.js' };
  writeFileSync(join(sdk, 'package.json'), JSON.stringify({ name: 'agent-fleet-sdk', type: 'module', exports }));
  writeFileSync(join(sdk, 'index.js'), `export * from '${join(root, 'dist', 'sdk', 'index.js')}';`);
  execFileSync(process.execPath, [join(root, 'scripts', 'publish', 'browser-bundle.mjs'), join(sdk, 'browser.js')]);
  cpSync(join(sdk, 'browser.js'), join(folder, 'sdk.js'));
  symlinkSync(join(root, 'node_modules', 'fastify'), join(folder, 'node_modules', 'fastify'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'page.html'), documentedBlock('end-users.md', 'html', '<form>'));
  writeFileSync(join(folder, 'app.js'), documentedBlock('end-users.md', 'js', '// app.js'));
  writeFileSync(join(folder, 'app.py'), documentedBlock('end-users.md', 'py', '# app.py'));
}
install();
const python = await pythonWithPackage();
await installPackages(python, ['-c', join(root, 'python', 'requirements-dev.txt'), 'fastapi', 'uvicorn']);

test.each([
  ['Fastify', process.execPath, ['app.js']],
  ['FastAPI', python, ['-m', 'uvicorn', 'app:app', '--port', String(port)]],
])(
  'with %s: the page of a user asks and streams, and reaches what is that user’s only',
  async (name, command, args) => {
    const { client_id, client_secret } = await api.credentialOf(api.tenantId, ['admin']);
    const credential = { FLEET_CLIENT_ID: client_id, FLEET_CLIENT_SECRET: client_secret };
    const env = { PATH: process.env.PATH, FLEET_BASE_URL: api.baseUrl, ...credential, PORT: String(port) };
    const app = spawn(command, args, { cwd: folder, env, stdio: ['ignore', 2, 2] });
    try {
      await until(async () => (await fetch(origin)).ok, { what: 'the app' });
      expect((await fetch(`${origin}/fleet-token`, { method: 'POST' })).status).toBe(401);
      const user = `ann-of-${name}`;
      const others = await api.client.send('hi', { blocking: false, metadata: { agent_type: 'concierge' } });
      const context = await browser.newContext();
      await context.addCookies([{ name: 'user', value: user, url: origin }]);
      const page = await context.newPage();
      await page.goto(origin);
      const accepted = await api.nextMessage();
      await page.locator('input').fill('What is 6 * 7?');
      await page.getByRole('button', { name: 'Ask' }).click();
      const id = await accepted();
      expect(await api.client.message(id)).toMatchObject({ user_id: user, agent_type: 'concierge' });
      const artifacts = [{ artifactId: 'a', parts: [{ kind: 'text' as const, text: `42, ${user}` }] }];
      await answerMessage(api, id, { ...COMPLETED, artifacts });
      await page.getByText(`42, ${user}`).waitFor();
      // What a script in the page can do with the token, it can do for this user only.
      const found = await page.evaluate(`(async () => {
      const { token } = await (await fetch('/fleet-token', { method: 'POST' })).json();
      const call = async (path, body) => {
        const headers = { authorization: 'Bearer ' + token, 'content-type': 'application/json' };
        return (await fetch('${api.baseUrl}' + path, { method: 'POST', headers, body: JSON.stringify(body) })).json();
      };
      const { messages } = await call('/messages/get', {});
      const other = await call('/messages/get_by_id', { message_id: '${others.id}' });
      const agents = await call('/agents/get', {});
      return [messages.map(({ message_id }) => message_id), other.code, agents.code];
    })()`);
      expect(found).toEqual([[id], 'NOT_FOUND', 'forbidden']);
    } finally {
      app.kill('SIGKILL');
    }
  },
);
