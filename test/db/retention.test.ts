import { expect, test } from 'vitest';
import { dispatchTotals } from '../../agents/agent-connections.js';
import { getApprovals } from '../../messages/input/audit.js';
import { getMessage } from '../../messages/read/read.js';
import { readDetails } from '../../sessions/session-records.js';
import { callerOf } from '../setup/core.js';
import {
  database,
  message,
  monthsOf,
  readEvents,
  rest,
  retention,
  TABLES,
  tenantId,
  usePastMonths,
} from './retention-fixture.js';

usePastMonths();

test('whole months that are older than the retention go, with all that belongs to their messages', async () => {
  const old = await message(4);
  const recent = await message(1);
  expect(await rest()).toMatchObject({ sessions: 2, input_decisions: 2, deliveries: 2 });
  await readEvents();
  await retention().turn();
  for (const table of Object.keys(TABLES)) expect(await monthsOf(table)).toEqual([1]);
  const { input_decisions, ...others } = await rest();
  expect(new Set(Object.values(others))).toEqual(new Set([1]));
  const db = database.db();
  // Who decided, when and about what outlives the message; what they wrote and from where does not.
  expect(input_decisions).toBe(2);
  const caller = callerOf(tenantId);
  const decisionOf = async (message_id: string) => (await getApprovals(db, caller, 'message', message_id))[0];
  const erased = await decisionOf(old.message_id);
  const principal = { type: 'credential', id: 'cred_1' };
  expect(erased).toMatchObject({ principal, resolution: 'confirmed', digest: 'd' });
  expect(erased).not.toHaveProperty('comment');
  expect(erased).not.toHaveProperty('ip');
  expect(await decisionOf(recent.message_id)).toMatchObject({ comment: 'private', ip: '10.0.0.1' });
  await expect(getMessage(db, caller, old.message_id)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await expect(readDetails(db, caller, old.session_id)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  expect(await getMessage(db, caller, recent.message_id)).toMatchObject({ state: 'completed' });
  expect(await dispatchTotals(db, tenantId, 'a')).toMatchObject({ dispatches_succeeded: 2 });
});
