import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Connection } from '@temporalio/client';
import { expect, test } from 'vitest';
import { AGENT_WATCH, messageWorkflowId } from '../../../../contracts/workflows.js';
import { startPlatform } from '../../../setup/platform/platform.js';
import { until } from '../../../setup/until.js';
import { hold, joinType, to } from '../../../system/fixture.js';

const KEYWORD = 2;
/** As many as a namespace on a SQL store may have. */
const ALL_KEYWORDS = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`Taken${n}`, KEYWORD]));

const prepare = async (connection: Connection, namespace: string) => {
  await connection.operatorService.addSearchAttributes({ namespace, searchAttributes: ALL_KEYWORDS });
};
const shared = await startPlatform({ WATCH_AFTER_MS: '0', FLEET_LOG_LEVEL: 'info' }, { prepare });

test('a cluster that refuses the search attributes is used without them, with one clear line', async () => {
  const { platform, temporal } = shared;
  const agent = await joinType(platform, 'slow');
  const { task, dispatch } = await hold(platform.client, agent, to('slow'));
  const { tenant_id } = platform.devJson();
  const workflow = temporal.workflow.getHandle(messageWorkflowId({ tenant_id, message_id: task.id }));
  await until(() => workflow.describe(), { what: 'the workflow' });
  dispatch.result('done');
  const description = await until(async () => {
    const found = await workflow.describe();
    return found.status.name === 'COMPLETED' && found;
  });
  expect(Object.keys(description.searchAttributes).filter((name) => name.startsWith('Fleet'))).toEqual([]);
  const log = readFileSync(join(platform.dataDir, 'logs', 'platform.log'), 'utf8');
  expect(log.match(/refuses the search attributes/g)).toHaveLength(1);
});

test('the watch over the agents is a Temporal Schedule, made once', async () => {
  const { temporal } = shared;
  const { spec, action } = await temporal.schedule.getHandle(AGENT_WATCH.scheduleId).describe();
  expect(spec.intervals).toEqual([expect.objectContaining({ every: AGENT_WATCH.everySeconds * 1_000 })]);
  expect(action).toMatchObject({ workflowType: 'agentWatch' });
});
