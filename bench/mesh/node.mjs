/**
 * A mesh node on its own. Connections are recorded in a real database; dispatches are in memory only, so that the benchmark measures the
 * mesh. With `tls` the node terminates TLS; without, it runs as if behind a proxy that does.
 */
import { randomUUID } from 'node:crypto';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { openDb } from '../../dist/db/pool.js';
import { createMeshServer } from '../../dist/mesh/server/server.js';
import { DispatchRunner } from '../../dist/messages/runner/runner.js';
import { createMemoryBus } from '../../dist/messages/stream/memory-bus.js';
import { readConfig } from '../../dist/runtime/config.js';
import { createLogger } from '../../dist/runtime/logger.js';
import { ToolCalls } from '../../dist/tools/tool-calls.js';
import { createLocalLink } from '../../dist/tools/tool-link.js';
import { serve } from '../harness/child-process.mjs';
import { residentMiB } from '../harness/cpu.mjs';
import { measured, quantile } from '../harness/measure.mjs';
import { payloadOf } from './dispatch.mjs';

const DAY_MS = 86_400_000;
/** Pause between two probe calls. */
const PROBE_MS = 10;

const done = { state: 'completed', message: { state: 'completed' } };
/** The dispatch store of the mesh, answered from memory. */
const DISPATCHES = {
  find: async () => null,
  end: async (_dispatch, { state }) => {
    if (state !== 'completed') throw new Error('a dispatch failed');
    return done;
  },
  release: async () => true,
  failAsLost: async () => null,
  closedAmong: async () => [],
  agentJoined: async () => undefined,
};

/** The benchmark calls no tools. */
const noTools = async () => {
  throw new Error('a tool was called');
};

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');

/** Creates open dispatches to an instance as the fast path does. They differ only in their ids: building them is not the mesh's work. */
function dispatchFactory(tenantId, meshId, { instanceId, epoch }) {
  const payload = payloadOf(randomUUID(), tenantId);
  const open = {
    ...payload.session_context,
    instance_id: instanceId,
    deployment_mode: 'connected',
    epoch,
    mesh_id: meshId,
    sent_at: new Date(),
    produced: { artifacts: [], usage: null },
  };
  return () => {
    const dispatch_id = `dsp_${randomUUID()}`;
    return { ...open, dispatch_id, payload: { ...payload, dispatch_id } };
  };
}

/** Calls the target repeatedly and records how many milliseconds each answer takes. */
async function runProbe(probe, send) {
  while (probe.isRunning) {
    const from = performance.now();
    await send();
    probe.times.push(performance.now() - from);
    await delay(PROBE_MS);
  }
}

/** @param {{ databaseUrl: string, tenantId: string, tls?: { cert: string, key: string } }} options */
serve(async ({ databaseUrl, tenantId, tls }) => {
  const log = createLogger({ level: 'error' });
  const db = openDb({ url: databaseUrl, log });
  const meshId = `mesh_${randomUUID()}`;
  const exp = Math.floor((Date.now() + DAY_MS) / 1_000);
  const caller = {
    tenant_id: tenantId,
    credential_id: 'cred_bench',
    agent_type: 'echo',
    scopes: ['full'],
    sub: 'b',
    exp,
  };
  const bus = createMemoryBus({ log });
  const runner = new DispatchRunner({ dispatches: DISPATCHES, bus, guards: { guardsOf: () => null }, db, log, meshId });
  const server = createMeshServer({
    config: readConfig({ FLEET_MESH_PORT: '0', ...(!tls && { TRUST_PROXY_CIDRS: '127.0.0.0/8' }) }),
    db,
    log,
    bus,
    dispatches: DISPATCHES,
    runner,
    authenticator: { authenticate: async () => caller },
    tools: new ToolCalls({ db, log, link: createLocalLink(meshId), hosted: noTools, platform: {} }),
    tls,
  });
  const { port } = await server.listen();
  runner.start({ connected: server.transport });
  let nextDispatch;
  const send = async () => {
    const end = runner.send(nextDispatch(), () => true);
    if (!end) throw new Error('the agent cannot be reached');
    await end;
  };
  let probe;
  return {
    ready: { url: `${tls ? 'wss' : 'ws'}://127.0.0.1:${port}` },
    commands: {
      ...measured(send),
      target: async (instanceId) => {
        const [row] = await db.tenant(tenantId, (tx) =>
          tx.query('SELECT connection_epoch AS epoch FROM agents WHERE tenant_id = $1 AND instance_id = $2', [
            tenantId,
            instanceId,
          ]),
        );
        nextDispatch = dispatchFactory(tenantId, meshId, { instanceId, epoch: row.epoch });
      },
      memory: () => {
        collectGarbage();
        collectGarbage();
        return { residentMiB: residentMiB(process.pid), heapMiB: process.memoryUsage().heapUsed / 2 ** 20 };
      },
      stats: () => server.stats(),
      startProbe: () => {
        const stalls = monitorEventLoopDelay({ resolution: 1 });
        stalls.enable();
        probe = { times: [], stalls, isRunning: true };
        probe.ended = runProbe(probe, send);
      },
      stopProbe: async () => {
        probe.isRunning = false;
        await probe.ended;
        probe.stalls.disable();
        const { times, stalls } = probe;
        return {
          p50Ms: quantile(times, 0.5),
          p99Ms: quantile(times, 0.99),
          stallMs: stalls.max / 1e6,
          count: times.length,
        };
      },
    },
  };
});
