import pLimit from 'p-limit';
import { expect, test } from 'vitest';
import { endSaturation, markSaturated } from '../../../agents/agent-saturation.js';
import { LIMITS } from '../../../contracts/limits.js';
import { message } from '../../mesh/hosted/hosted-agent.js';
import { hostedSetup } from '../../mesh/hosted/hosted-fixture.js';
import { freshDatabase } from '../../setup/database.js';
import { until } from '../../setup/until.js';
import { useUpTurns } from '../../setup/used-up-turns.js';

const { fixture: agentOf } = hostedSetup(freshDatabase);
const MAX = LIMITS.dispatchesInFlightPerConnection;

test('an agent that does not answer gets its share of a node, and more are refused at once until one ends', async () => {
  const answers: (() => void)[] = [];
  const { fixture } = await agentOf({
    'message/send': (reply) => void answers.push(() => reply.result(message('done'))),
  });
  const runner = fixture.runner();
  const refs = await pLimit(16).map(Array.from({ length: MAX + 1 }), () => fixture.open());
  const ends = refs.map((ref) => runner.run(ref));
  const isSaturated = async (): Promise<boolean> => {
    const [row] = await fixture.database.query<{ saturated: boolean }>(
      'SELECT is_saturated(a) AS saturated FROM agents a WHERE tenant_id = $1',
      [fixture.tenantId],
    );
    return row?.saturated === true;
  };
  expect(await Promise.race(ends)).toMatchObject({ kind: 'not_sent' });
  await until(isSaturated, { what: 'the saturation' });
  await until(() => answers.length === MAX, { what: 'the requests' });
  answers.shift()?.();
  await until(async () => !(await isSaturated()), { what: 'the end of the saturation' });
  for (const answer of answers) answer();
  await until(async () => (await Promise.all(ends)).filter(({ kind }) => kind === 'closed').length === MAX, {
    what: 'the ends',
  });
});

test('an agent is marked and freed while its tenant has no turn at the database', async () => {
  const { fixture } = await agentOf({});
  const agent = { tenant_id: fixture.tenantId, instance_id: 'hosted-1' };
  const { db } = fixture.core;
  const turns = await useUpTurns(db, fixture.tenantId);
  try {
    await markSaturated(db, agent, 'mesh_test');
    expect(await endSaturation(db, agent, 'mesh_test')).toBe(true);
    expect(db.counts().turns.waiting).toBeGreaterThan(0);
  } finally {
    await turns.release();
  }
});

test('a node that has no room for an agent does not keep the other nodes from sending to it', async () => {
  const { fixture } = await agentOf({});
  const agent = { tenant_id: fixture.tenantId, instance_id: 'hosted-1' };
  const { db } = fixture.core;
  const saturated = async () => {
    const [row] = await fixture.database.query<{ saturated: boolean }>(
      'SELECT is_saturated(a) AS saturated FROM agents a WHERE tenant_id = $1',
      [fixture.tenantId],
    );
    return row?.saturated;
  };
  const renew = () =>
    fixture.database.query(
      `INSERT INTO mesh_nodes (mesh_id) VALUES ('mesh_one'), ('mesh_two'), ('mesh_test')
       ON CONFLICT (mesh_id) DO UPDATE SET renewed_at = now()`,
    );
  await renew();
  for (const node of ['mesh_one', 'mesh_test']) {
    await markSaturated(db, agent, node);
    expect(await saturated()).toBe(false);
  }
  await markSaturated(db, agent, 'mesh_two');
  expect(await saturated()).toBe(true);
  expect(await endSaturation(db, agent, 'mesh_one')).toBe(true);
  expect(await saturated()).toBe(false);
  // A dead node has no room either way.
  await fixture.database.query("UPDATE mesh_nodes SET renewed_at = now() - interval '6 s' WHERE mesh_id = 'mesh_one'");
  await markSaturated(db, agent, 'mesh_two');
  expect(await saturated()).toBe(true);
  await fixture.database.query("DELETE FROM mesh_nodes WHERE mesh_id IN ('mesh_one', 'mesh_two')");
});
