import { LIMITS } from '../contracts/limits.js';
import type { Tx } from '../db/pool.js';

/** A report that is not above the count says nothing new, and would be outdated with the next session that ends. */
const REPORT = `
  WITH before AS (SELECT sessions FROM agent_reports WHERE tenant_id = $1 AND instance_id = $2)
  INSERT INTO agent_reports (tenant_id, instance_id, sessions)
    SELECT $1, $2, CASE WHEN $3 > counted_sessions($1, $2) THEN $3 ELSE 0 END
    ON CONFLICT (tenant_id, instance_id) DO UPDATE SET sessions = excluded.sessions
      WHERE agent_reports.sessions <> excluded.sessions
  RETURNING sessions - coalesce((SELECT sessions FROM before), 0) AS change`;

/**
 * Takes note of the sessions that an agent reports: its load is the larger of that and the counted number until the next report. The caller
 * holds the agent's lock.
 * @returns by how much the number in force has changed
 */
export async function reportSessions(
  tx: Tx,
  agent: { tenant_id: string; instance_id: string },
  sessions: number,
): Promise<number> {
  const values = [agent.tenant_id, agent.instance_id, Math.min(sessions, LIMITS.reportedSessionsMax)];
  const [row] = await tx.query<{ change: number }>(REPORT, values);
  return row?.change ?? 0;
}
