import { condition, continueAsNew, workflowInfo } from '@temporalio/workflow';
import type { SessionInput } from '../contracts/workflows.js';
import { record } from './stubs.js';
import { show } from './visibility.js';
import { WakeUps } from './wake-ups.js';

/**
 * Runs as long as a session: sleeps, then reads the session's last activity from Postgres and sleeps again or ends the session as
 * `expired`. Closing the session signals the workflow; messages do not.
 */
export async function session(input: SessionInput): Promise<{ status: string }> {
  const wakeUps = new WakeUps();
  for (;;) {
    wakeUps.woken = false;
    const check = await record.expireIfIdle(input);
    if (check.ended) {
      show(check.status, null, `The session is ${check.status}.`);
      if (!wakeUps.woken) return { status: check.status };
      continue;
    }
    if (check.check_in_ms === null) {
      show('active', null, 'The session is open until it is closed.');
      await condition(() => wakeUps.woken);
    } else {
      const seconds = Math.ceil(check.check_in_ms / 1_000);
      show('active', null, `The session is open; the next check for idleness is in ${seconds} s.`);
      await condition(() => wakeUps.woken, check.check_in_ms);
    }
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof session>(input);
  }
}
