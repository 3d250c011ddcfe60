/**
 * What a hundred policies cost `/send` (docs/performance.md): two tenants of one platform take turns, call by call, and have the policies in
 * turn, so that neither the machine nor the tenant makes the difference. Part of `npm run bench:policy -- --send`.
 */
import { Caller } from '../harness/caller.mjs';
import { Harness } from '../harness/harness.mjs';
import { quantile } from '../harness/measure.mjs';
import { markdownTable } from '../harness/report.mjs';
import { createTenant } from '../harness/tenants.mjs';

const GOAL = 1.05;
const POLICIES = 100;
const WARM_UP_CALLS = 500;
/** The sides are changed so often: each tenant has the policies in half of the turns. */
const TURNS = 6;

/** None applies to what is sent; the conditions of half of them must be looked at. */
const policy = (n) => ({
  scope: n % 4 < 2 ? 'admission' : 'dispatch',
  name: `policy ${n}`,
  decision: 'deny',
  match:
    n % 2 === 0
      ? { agent_types: [`type-${n}`, 'other-*'] }
      : { agent_types: ['echo'], arguments: [{ path: 'metadata.project', op: 'eq', value: `project-${n}` }] },
});

/** A tenant with an echo agent. */
async function startTenant(platform, agent, name) {
  const { client_id, client_secret } = await createTenant(platform, name);
  const { token } = await platform.post('/auth/get_token', { client_id, client_secret });
  const caller = new Caller(platform.dev.base_url, token);
  const instanceId = `echo-${name}`;
  const registration = { agent_type: 'echo', instance_id: instanceId, max_concurrent_sessions: 0 };
  const url = new URL((await caller.post('/agents/register', registration)).connect_url);
  url.searchParams.set('instance_id', instanceId);
  await agent.ask('join', { url: url.href, token, ca: platform.ca, instanceId });
  return { caller, send: caller.send('echo') };
}

async function timed(work) {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

/** The milliseconds of calls of both tenants, made in turn. Which is first changes with each pair. */
async function alternate(one, other, calls) {
  const times = [[], []];
  for (let call = 0; call < calls; call += 1) {
    for (const at of call % 2 === 0 ? [0, 1] : [1, 0]) times[at].push(await timed([one, other][at].send));
  }
  return times;
}

/** One turn: the first tenant has the policies. @returns the medians with and without */
async function turn(subject, other, calls) {
  const made = [];
  for (let n = 0; n < POLICIES; n += 1) made.push(await subject.caller.post('/policies/create_policy', policy(n)));
  await alternate(subject, other, WARM_UP_CALLS);
  const [withPolicies, without] = await alternate(subject, other, calls);
  for (const { policy_id } of made.map(({ policy }) => policy))
    await subject.caller.post('/policies/delete_policy', { policy_id });
  return { with: quantile(withPolicies, 0.5), without: quantile(without, 0.5) };
}

const median = (values) => quantile(values, 0.5);

/** Measures and prints. @returns whether the goal is met */
export async function reportSend({ calls = 500 } = {}) {
  let ratio = Number.NaN;
  const failed = await Harness.run(async (harness) => {
    const platform = await harness.platform('policies', { FLEET_FAST_PATH: 'on' });
    const { connected } = await harness.agents(platform);
    const tenants = [await startTenant(platform, connected, 'a'), await startTenant(platform, connected, 'b')];
    harness.onStop(() => Promise.all(tenants.map(({ caller }) => caller.close())));
    await alternate(...tenants, WARM_UP_CALLS * TURNS);
    const turns = [];
    for (let n = 0; n < TURNS; n += 1) turns.push(await turn(...(n % 2 === 0 ? tenants : tenants.toReversed()), calls));
    const ratioOf = (parity) =>
      median(turns.filter((_, n) => n % 2 === parity).map((each) => each.with / each.without));
    // What is due to the tenant is in one of them as often as its inverse in the other.
    ratio = Math.sqrt(ratioOf(0) * ratioOf(1));
    const rows = turns.map((each) => [each.without, each.with, each.with / each.without].map((one) => one.toFixed(3)));
    console.log(markdownTable(['ms without policies, p50', `ms with ${POLICIES}, p50`, 'ratio'], rows));
    return 0;
  });
  const met = failed === 0 && ratio <= GOAL;
  console.log(
    `\n${met ? 'ok' : 'MISSED'}: ${ratio.toFixed(3)} of what /send takes without policies, goal at most ${GOAL}`,
  );
  return met;
}
