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

const isSaturated = ({ database, tenantId }: Awaited<ReturnType<typeof agentOf>>['fixture']) =>
  database.value<boolean>('SELECT is_saturated(a) FROM agents a WHERE tenant_id = $1', [tenantId]);

test('an agent that does not answer gets its share of a node, and more are refused at once until one ends', async () => {
  const answers: (() => void)[] = [];
  const { fixture } = await agentOf({
    'message/send': (reply) => void answers.push(() => reply.result(message('done'))),
  });
  const runner = fixture.runner();
  const refs = await pLimit(16).map(Array.from({ length: MAX + 1 }), () => fixture.open());
  const ends = refs.map((ref) => runner.run(ref));
  expect(await Promise.race(ends)).toMatchObject({ kind: 'not_sent' });
  await until(() => isSaturated(fixture), { what: 'the saturation' });
  await until(() => answers.length === MAX, { what: 'the requests' });
  answers.shift()?.();
  await until(async () => !(await isSaturated(fixture)), { what: 'the end of the saturation' });
  for (const answer of answers) answer();
  expect((await Promise.all(ends)).filter(({ kind }) => kind === 'closed')).toHaveLength(MAX);
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
