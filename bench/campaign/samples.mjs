/** Memory and connections through a campaign or a soak, from the restart of the first node on. */
import { readdirSync } from 'node:fs';
import pg from 'pg';
import { judgeFlatness } from '../harness/cluster/flatness.mjs';
import { every } from '../harness/cluster/pace.mjs';
import { hasProc, residentMiB } from '../harness/cpu.mjs';
import { print } from '../harness/report.mjs';

const SAMPLES = 60;
/** A line for each of so many samples. */
const PRINTED_EVERY = 6;
/** Connections come and go with callers and agents: growth up to this is flat. */
const CONNECTIONS_SLACK = 15;

const openFiles = (pid) => readdirSync(`/proc/${pid}/fd`).length;

/** Samples until the signal aborts. @returns `{ memory, connections }`, one for each sample since the process of the first node began */
export async function sample({ cluster, fleet, load, runMs, signal }) {
  const [first] = cluster.nodes;
  const database = new pg.Client({ connectionString: cluster.dev.database_url });
  await database.connect();
  const samples = [];
  let taken = 0;
  let pid = first.platform.pid;
  const countConnections = async () => {
    const { rows } = await database.query(
      "SELECT count(*)::integer AS count FROM pg_stat_activity WHERE backend_type = 'client backend'",
    );
    return rows[0].count;
  };
  const agents = () =>
    Object.fromEntries(Object.entries(fleet.steadyPids).map(([name, of]) => [`MiB of the ${name}`, residentMiB(of)]));
  /** Reads /proc without a wait: the process lives as long as nobody has begun to restart the node. */
  const take = (count) => {
    const connections = { 'connections to Postgres': count };
    if (!hasProc) return { memory: {}, connections };
    return {
      memory: { 'MiB of the first node': residentMiB(pid), ...agents() },
      connections: { ...connections, 'open files of the first node': openFiles(pid) },
    };
  };
  try {
    await every(runMs / SAMPLES, signal, async () => {
      taken += 1;
      const count = await countConnections();
      if (first.isRestarting) return;
      if (pid !== first.platform.pid) samples.length = 0;
      pid = first.platform.pid;
      samples.push(take(count));
      if (taken % PRINTED_EVERY !== 0) return;
      const { memory, connections } = samples.at(-1);
      const figures = Object.entries({ ...memory, ...connections }).map(
        ([name, value]) => `${name} ${value.toFixed(0)}`,
      );
      print(`${((taken * 100) / SAMPLES).toFixed(0)} %: ${load.inFlight} in flight, ${figures.join(', ')}`);
    });
  } finally {
    await database.end();
  }
  return samples;
}

/** @returns rows of a table, and violations */
export function judgeSamples(samples, minutes) {
  const memory = judgeFlatness(
    samples.map((one) => one.memory),
    { minutes },
  );
  const connections = judgeFlatness(
    samples.map((one) => one.connections),
    { minutes, slack: CONNECTIONS_SLACK },
  );
  return {
    rows: [...memory.rows, ...connections.rows],
    violations: [...memory.violations, ...connections.violations],
  };
}
