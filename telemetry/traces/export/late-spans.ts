import type { Db, Tx } from '../../../db/pool.js';

/** Spans of one message that were written after it was exported, or just before. */
export interface LateSpans {
  tenant_id: string;
  message_id: string;
  span_ids: string[];
}

/** As long as an exporter may have been switched off: after a day it begins with what is new. */
const WAITS = "late_at > now() - interval '1 day'";

/** Whether spans wait, as a condition. The index is empty most of the time. */
export const LATE_SPANS_WAIT = `EXISTS (SELECT 1 FROM trace_spans WHERE ${WAITS})`;

const NEXT = `
  SELECT t.tenant_id, t.message_id, array_agg(t.span_id) AS span_ids
    FROM (SELECT tenant_id, message_id FROM trace_spans WHERE ${WAITS} ORDER BY late_at LIMIT 1) l
    JOIN trace_spans t ON t.tenant_id = l.tenant_id AND t.message_id = l.message_id AND t.late_at IS NOT NULL GROUP BY 1, 2`;

/** The spans that have waited longest; undefined where none wait. */
export async function nextLateSpans(db: Db): Promise<LateSpans | undefined> {
  const [late] = await db.system((tx) => tx.query<LateSpans>(NEXT, [], 'next_late_spans'));
  return late;
}

/** Notes that the collector is done with spans: with their message or later, they are exported once. */
export async function noteExported(tx: Tx, spanIds: readonly string[]): Promise<void> {
  if (spanIds.length === 0) return;
  const [{ is_any } = { is_any: false }] = await tx.query<{ is_any: boolean }>(
    `SELECT ${LATE_SPANS_WAIT} AS is_any`,
    [],
    'any_late_spans',
  );
  if (!is_any) return; // what is only read waits for nobody who writes
  const text = 'UPDATE trace_spans SET late_at = NULL WHERE late_at IS NOT NULL AND span_id = ANY ($1)';
  await tx.query(text, [spanIds], 'note_exported_spans');
}
