/**
 * What `/send` costs: a whole platform, an echo agent, and a floor measured in the same run.
 *
 *     npm run build && node bench/send.mjs [messages] [at once]
 *
 * The floor of one message is what no design can do without: two commits to the same Postgres and one round trip over a WebSocket
 * with TLS. Only ratios are worth comparing between machines.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { WebSocket, WebSocketServer } from 'ws';
import { connectAgent } from '../dist/sdk/agent/index.js';
import { createClient } from '../dist/sdk/client/index.js';

const MESSAGES = Number(process.argv[2] ?? 100);
const AT_ONCE = Number(process.argv[3] ?? 16);
const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Runs `work` `count` times, `width` at once. Gives milliseconds per call (median) and calls per second. */
async function measure(count, width, work) {
  const times = [];
  let left = count;
  const startedAt = performance.now();
  const lane = async () => {
    while (left-- > 0) {
      const from = performance.now();
      await work();
      times.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
  const seconds = (performance.now() - startedAt) / 1_000;
  times.sort((a, b) => a - b);
  return { p50: times[times.length >> 1], perSecond: count / seconds };
}

async function startPlatform(dataDir) {
  const env = {
    ...process.env,
    FLEET_DATA_DIR: dataDir,
    FLEET_API_PORT: '0',
    FLEET_MESH_PORT: '0',
    FLEET_EXAMPLES: 'off',
  };
  const child = spawn(process.execPath, [join(root, 'dist', 'start.js')], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const devFile = join(dataDir, 'dev.json');
  while (!existsSync(devFile)) {
    if (child.exitCode !== null) throw new Error('the platform did not start');
    await delay(100);
  }
  return { child, dev: JSON.parse(readFileSync(devFile, 'utf8')) };
}

/** Two commits and an echo over a WebSocket with TLS. */
async function floorOf(dev, dataDir) {
  const pool = new pg.Pool({ connectionString: dev.database_url, max: AT_ONCE });
  pool.on('error', () => undefined); // the platform stops its Postgres at the end
  await pool.query('CREATE TABLE bench_floor (id bigint GENERATED ALWAYS AS IDENTITY, body text)');
  const tls = {
    cert: readFileSync(join(dataDir, 'tls', 'server.pem')),
    key: readFileSync(join(dataDir, 'tls', 'server-key.pem')),
  };
  const server = createServer(tls);
  new WebSocketServer({ server }).on('connection', (socket) => socket.on('message', (data) => socket.send(data)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = new WebSocket(`wss://127.0.0.1:${server.address().port}`, { ca: readFileSync(dev.ca_file) });
  await once(socket, 'open');
  const waiting = new Map();
  socket.on('message', (data) => waiting.get(String(data))?.());
  let next = 0;
  const echo = () =>
    new Promise((resolve) => {
      const id = String(next++);
      waiting.set(id, resolve);
      socket.send(id);
    });
  const commit = () => pool.query('INSERT INTO bench_floor (body) VALUES ($1)', ['x'.repeat(500)]);
  const work = async () => {
    await commit();
    await echo();
    await commit();
  };
  const close = async () => {
    socket.terminate();
    server.close();
    await pool.query('DROP TABLE bench_floor');
    await pool.end();
  };
  return { work, close };
}

function report(name, floor, send) {
  const latency = `p50 ${send.p50.toFixed(1)} ms, floor ${floor.p50.toFixed(1)} ms, ratio ${(send.p50 / floor.p50).toFixed(1)}`;
  const rate = `${send.perSecond.toFixed(0)}/s, floor ${floor.perSecond.toFixed(0)}/s, ratio ${(floor.perSecond / send.perSecond).toFixed(1)}`;
  process.stdout.write(`${name}: ${latency}; ${rate}\n`);
}

const dataDir = mkdtempSync(join(tmpdir(), 'fleet-bench-'));
const { child, dev } = await startPlatform(dataDir);
try {
  const access = {
    baseUrl: dev.base_url,
    clientId: dev.client_id,
    clientSecret: dev.client_secret,
    ca: readFileSync(dev.ca_file, 'utf8'),
  };
  const agent = await connectAgent({
    ...access,
    agentType: 'echo',
    maxConcurrentSessions: 0,
    onMessage: async (task) => task.text,
  });
  const client = createClient(access);
  const { work, close } = await floorOf(dev, dataDir);
  const send = () => client.send('hello', { metadata: { agent_type: 'echo' } });
  await measure(10, 2, send);
  await measure(10, 2, work);
  report('one at a time', await measure(MESSAGES, 1, work), await measure(MESSAGES, 1, send));
  report(`${AT_ONCE} at once`, await measure(MESSAGES * 2, AT_ONCE, work), await measure(MESSAGES * 2, AT_ONCE, send));
  await close();
  await agent.close();
} finally {
  child.kill('SIGTERM');
  await once(child, 'exit');
  rmSync(dataDir, { recursive: true, force: true });
}
