import { expect, test } from 'vitest';
import { LIMITS } from '../../../contracts/limits.js';
import { freshDatabase } from '../../setup/database.js';
import { until } from '../../setup/until.js';
import { message } from './hosted-agent.js';
import { hostedSetup, runContext } from './hosted-fixture.js';

const { fixture: agentOf } = hostedSetup(freshDatabase);
const MAX = LIMITS.dispatchesInFlightPerConnection;

test('an agent that does not answer gets its share of a node, and more are refused at once until one ends', async () => {
  const answers: (() => void)[] = [];
  const { fixture } = await agentOf({
    'message/send': (reply) => void answers.push(() => reply.result(message('done'))),
  });
  const runner = fixture.runner();
  const refs = await Promise.all(Array.from({ length: MAX + 1 }, () => fixture.open()));
  const ends = refs.map((ref) => runner.run(ref, runContext()));
  const isSaturated = async (): Promise<boolean> => {
    const [row] = await fixture.database.query<{ saturated: boolean }>(
      'SELECT is_saturated(a) AS saturated FROM agents a WHERE tenant_id = $1',
      [fixture.tenantId],
    );
    return row?.saturated === true;
  };
  expect(await Promise.race(ends)).toEqual({ kind: 'not_sent', reason: 'AGENT_BUSY' });
  expect(await isSaturated()).toBe(true);
  await until(() => answers.length === MAX, { what: 'the requests' });
  answers.shift()?.();
  await until(async () => !(await isSaturated()), { what: 'the end of the saturation' });
  for (const answer of answers) answer();
  await until(async () => (await Promise.all(ends)).filter(({ kind }) => kind === 'closed').length === MAX, {
    what: 'the ends',
  });
});
