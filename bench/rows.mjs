/**
 * What years of rows cost (docs/performance.md): the same calls on an empty database and on a full one, on one server.
 *
 *     npm run bench:rows -- [--json FILE] [--messages N] [--months N] [--rounds N]
 *     npm run bench:rows -- --size [N]       bytes stored for a short message
 *     npm run bench:rows -- --expiry [N]     sessions that are due at once
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { createDatabase, createNamespaces, Harness, joinAgents } from './harness/harness.mjs';
import { quantile } from './harness/measure.mjs';
import { machineLine, markdownTable } from './harness/report.mjs';
import { measureExpiry } from './rows/expiry.mjs';
import { fill, fillShort, prepare } from './rows/fill.mjs';
import { operationsOf } from './rows/operations.mjs';
import { measureSize } from './rows/size.mjs';

const GOAL = 1.3;
const WAITING = 100;
const NAMESPACE = 'fleet-full';
const WARM_UP_CALLS = 3;
const RATE = '`/send`, 16 callers, per s';

const { values: given } = parseArgs({
  options: {
    json: { type: 'string' },
    messages: { type: 'string', default: '10000000' },
    months: { type: 'string', default: '24' },
    rounds: { type: 'string', default: '5' },
    size: { type: 'string' },
    expiry: { type: 'string' },
  },
});
const print = (text) => process.stdout.write(`${text}\n`);
const progress = (text) => process.stderr.write(`[bench] ${text}\n`);
const SETTINGS = { TENANT_MAX_IN_FLIGHT: '10000' };

async function onePlatform(harness, measure, count) {
  const platform = await harness.platform('rows', SETTINGS);
  await joinAgents(platform, await harness.agents(platform));
  return measure(platform, count);
}

/** The platforms by name. Both use the embedded servers of the first. */
async function platforms(harness) {
  const empty = await harness.platform('empty', SETTINGS);
  await createNamespaces(empty.dev.temporal_address, [NAMESPACE]);
  const full = await harness.platform('full', {
    ...SETTINGS,
    DATABASE_URL: await createDatabase(empty.dev.database_url, 'fleet_full'),
    TEMPORAL_ADDRESS: empty.dev.temporal_address,
    TEMPORAL_NAMESPACE: NAMESPACE,
  });
  const { tenant_id: tenantId, database_url: url } = full.dev;
  const bytes = await fill(url, { tenantId, messages: Number(given.messages), months: Number(given.months), progress });
  await fillShort(empty.dev.database_url, empty.dev.tenant_id);
  const agents = await harness.agents(empty);
  const both = { empty, full };
  for (const { dev } of Object.values(both))
    await prepare(dev.database_url, { tenantId: dev.tenant_id, waiting: WAITING });
  for (const platform of Object.values(both)) await joinAgents(platform, agents);
  return { both, bytes };
}

async function compare(harness) {
  const { both, bytes } = await platforms(harness);
  progress('warming up');
  const send = async (platform) => (await operationsOf(platform))[RATE]();
  // The sample of an empty database is what its warm-up sent.
  for (const platform of Object.values(both)) for (let call = 0; call < WARM_UP_CALLS; call += 1) await send(platform);
  const operations = { empty: await operationsOf(both.empty), full: await operationsOf(both.full) };
  const names = Object.keys(operations.empty);
  const rounds = Object.fromEntries(names.map((name) => [name, { empty: [], full: [] }]));
  for (let round = 0; round <= Number(given.rounds); round += 1) {
    for (const name of names) {
      for (const which of ['empty', 'full']) {
        const value = await operations[which][name]();
        if (round > 0) rounds[name][which].push(value); // the first round warms up
      }
    }
    progress(`round ${round} of ${given.rounds}`);
  }
  return { rounds, bytes };
}

const median = (values) => quantile(values, 0.5);

function report({ rounds, bytes }) {
  const figures = Object.entries(rounds).map(([name, { empty, full }]) => {
    const [before, after] = [median(empty), median(full)];
    return { name, empty: before, full: after, ratio: name === RATE ? before / after : after / before };
  });
  const rows = figures.map(({ name, empty, full, ratio }) => [
    name,
    empty.toFixed(2),
    full.toFixed(2),
    ratio.toFixed(2),
    ratio <= GOAL ? 'met' : 'missed',
  ]);
  const filled = `${given.messages} messages, ${(bytes / 1024 ** 3).toFixed(1)} GiB`;
  return { figures, table: markdownTable(['p50, ms', 'empty', filled, 'ratio', `goal ≤ ${GOAL}`], rows) };
}

process.exitCode = await Harness.run(async (harness) => {
  const machine = machineLine();
  let result;
  if (given.size !== undefined) result = await onePlatform(harness, measureSize, Number(given.size));
  else if (given.expiry !== undefined) result = await onePlatform(harness, measureExpiry, Number(given.expiry));
  else result = report(await compare(harness));
  print(`${machine}\n\n${result.table}`);
  if (given.json) writeFileSync(given.json, JSON.stringify(result));
  return 0;
});
