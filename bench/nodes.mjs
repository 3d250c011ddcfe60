/**
 * What a message costs when the agent's socket is on another node than the one that takes the call (docs/performance.md). One platform with
 * every role holds the socket; a second one, and a process with the role `api` alone, take calls too.
 *
 *     npm run bench:nodes -- [--json FILE] [--rounds N]
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { freePort } from '../dist/embedded/free-port.js';
import { Caller } from './harness/caller.mjs';
import { CpuMeter } from './harness/cpu.mjs';
import { Harness, joinAgents, serverPids } from './harness/harness.mjs';
import { measured, quantile } from './harness/measure.mjs';
import { Platform } from './harness/platform.mjs';
import { startRedis } from './harness/redis.mjs';
import { machineLine, markdownTable } from './harness/report.mjs';

const WARM_UP = { width: 16, rampMs: 0, ms: 10_000 };
const LEAD = { width: 16, rampMs: 0, ms: 1_500 };
const SEQUENTIAL = { calls: 300, maxMs: 3_000 };
const AT_16 = { width: 16, rampMs: 300, ms: 2_000 };
const IDLE_MS = 2_000;
const GOALS = { p50: 2, cpu: 1.5 };

const { values: given } = parseArgs({
  options: { json: { type: 'string' }, rounds: { type: 'string', default: '5' } },
});
const print = (text) => process.stdout.write(`${text}\n`);
const progress = (text) => process.stderr.write(`[bench] ${text}\n`);
const median = (values) => quantile(values, 0.5);

/** Another process on the servers of the first. @returns it and the address of its API */
async function peer(harness, first, name, roles, env) {
  const port = await freePort();
  const { dataDir, dev } = first;
  const tls = (file) => join(dataDir, 'tls', file);
  const settings = {
    DATABASE_URL: dev.database_url,
    TEMPORAL_ADDRESS: dev.temporal_address,
    FLEET_TLS_CERT: tls('server.pem'),
    FLEET_TLS_KEY: tls('server-key.pem'),
    FLEET_MESH_URL: dev.mesh_url,
    FLEET_API_PORT: String(port),
    ...env,
  };
  const platform = new Platform(join(harness.folder, name), settings, ['--roles', roles]);
  harness.onStop(() => platform.stop());
  await platform.readyLine();
  return { pid: platform.pid, url: `http://127.0.0.1:${port}` };
}

async function round(row, meter) {
  await row.throughput(LEAD);
  await meter.settle();
  const { p50Ms } = await row.sequential(SEQUENTIAL);
  await meter.settle();
  const before = meter.read();
  const { perSecond, total } = await row.throughput(AT_16);
  await meter.settle();
  const after = meter.read();
  const cpuMs = Object.keys(after).reduce((sum, name) => sum + after[name] - before[name], 0) / total;
  return { p50Ms, perSecond, cpuMs };
}

process.exitCode = await Harness.run(async (harness) => {
  const machine = machineLine();
  const redis = await startRedis(harness);
  const env = { REDIS_URL: redis.url, FLEET_SECRET_KEY: Buffer.alloc(32, 7).toString('base64') };
  const first = await harness.platform('first', env);
  await joinAgents(first, await harness.agents(first));
  const second = await peer(harness, first, 'second', 'api,mesh,worker', env);
  const api = await peer(harness, first, 'api', 'api', env);
  const places = { 'the same node': first.dev.base_url, 'another node': second.url, 'an api process': api.url };
  const pids = { first: first.pid, second: second.pid, api: api.pid, redis: redis.pid, ...serverPids(first) };
  const meter = new CpuMeter(pids);
  await meter.measureIdle(IDLE_MS);
  const rows = Object.entries(places).map(([name, url]) => {
    const caller = new Caller(url, first.token);
    return { name, ...measured(caller.send('echo')), rounds: [] };
  });
  for (const row of rows) await row.throughput(WARM_UP);
  for (let number = 1; number <= Number(given.rounds); number += 1) {
    for (const row of rows) row.rounds.push(await round(row, meter));
    progress(`round ${number} of ${given.rounds}`);
  }
  const figures = rows.map(({ name, rounds }) => ({
    name,
    p50_ms: median(rounds.map(({ p50Ms }) => p50Ms)),
    rps_16: median(rounds.map(({ perSecond }) => perSecond)),
    cpu_ms: median(rounds.map(({ cpuMs }) => cpuMs)),
  }));
  const [same] = figures;
  const ratios = figures.map(({ p50_ms, cpu_ms }) => ({ p50: p50_ms / same.p50_ms, cpu: cpu_ms / same.cpu_ms }));
  print(`${machine}\n`);
  print(
    markdownTable(
      [
        'the call comes to',
        'p50, ms',
        '16 callers, per s',
        'CPU ms',
        `p50 ratio (≤ ${GOALS.p50})`,
        `CPU ratio (≤ ${GOALS.cpu})`,
      ],
      figures.map(({ name, p50_ms, rps_16, cpu_ms }, index) => {
        const { p50, cpu } = ratios[index];
        return [name, p50_ms.toFixed(2), rps_16.toFixed(0), cpu_ms.toFixed(2), p50.toFixed(2), cpu.toFixed(2)];
      }),
    ),
  );
  if (given.json) writeFileSync(given.json, JSON.stringify({ figures, ratios }));
  return 0;
});
