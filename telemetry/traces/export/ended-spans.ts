import { BY_INDEX, limitMs } from '../../../db/pages/page.js';
import type { Db } from '../../../db/pool.js';
import type { PositionedEvent } from '../../event-reader.js';
import { spansOfMessages } from '../derive.js';
import type { PlanFacts } from '../facts.js';
import { grouped } from '../grouped.js';
import { planSpans } from '../plan-spans.js';
import { detailsOf } from '../read-details.js';
import { messagesByIds, plansByIds, stepsOf } from '../read-facts.js';
import { isSampled } from '../sampling.js';
import { inOrder, type Span } from '../span.js';
import type { ExportedSpan } from './otlp.js';

/** Something whose spans are complete: a message or a plan that has ended. */
export interface Ended {
  /** Of the event that says so. */
  position: number;
  tenant_id: string;
  kind: 'message' | 'plan';
  id: string;
}

const ENDS = /^(message\.(completed|error|canceled)|plan\.(completed|failed|canceled|rejected))$/;

/** For each statement, in milliseconds: one tenant's record must not hold up the export of all. */
const READ_MS = 10_000;

/** What has ended, by events, in their order, of traces that are sampled, as far as the events name them. @param sampleRatio the share of them, 0 to 1 */
export function endedBy(events: readonly PositionedEvent[], sampleRatio: number): Ended[] {
  return events.flatMap(({ position, message_id, record: { tenant_id, event_type, event, trace_id } }) => {
    if (!ENDS.test(event_type) || (trace_id !== undefined && !isSampled(trace_id, sampleRatio))) return [];
    const kind = event_type.startsWith('plan.') ? ('plan' as const) : ('message' as const);
    const id = kind === 'plan' ? event.plan_id : message_id;
    return typeof id === 'string' ? [{ position, tenant_id, kind, id }] : [];
  });
}

async function spansOfTenant(
  db: Db,
  tenantId: string,
  ended: readonly Ended[],
  sampleRatio: number,
): Promise<[id: string, ExportedSpan[]][]> {
  const idsOf = (kind: Ended['kind']) => ended.filter((one) => one.kind === kind).map(({ id }) => id);
  return db.system(async (tx) => {
    await tx.query(`${BY_INDEX}; ${limitMs(db, READ_MS)}`);
    const messages = (await messagesByIds(tx, tenantId, idsOf('message'))).filter(({ sampled }) => sampled);
    const byMessage = spansOfMessages(messages, await detailsOf(tx, tenantId, messages));
    const isExported = ({ trace_id, sampled }: PlanFacts) => sampled && isSampled(trace_id, sampleRatio);
    const plans = (await plansByIds(tx, tenantId, idsOf('plan'))).filter(isExported);
    const steps = await stepsOf(tx, tenantId, plans);
    const stepsBy = grouped(steps, ({ plan_id }) => plan_id);
    const exported = (spans: Span[], trace_id: string) => inOrder(spans).map((span) => ({ ...span, trace_id }));
    const ofMessages = messages.map(({ message_id, trace_id }): [string, ExportedSpan[]] => [
      message_id,
      exported(byMessage.get(message_id)?.spans ?? [], trace_id),
    ]);
    const ofPlans = plans.map((plan): [string, ExportedSpan[]] => [
      plan.plan_id,
      exported(planSpans(plan, stepsBy.get(plan.plan_id) ?? []).spans, plan.trace_id),
    ]);
    return [...ofMessages, ...ofPlans];
  });
}

/** The spans of what has ended, by its id, as they are derived for readers. Nothing for what was erased since, or is not sampled. */
export async function spansOfEnded(
  db: Db,
  ended: readonly Ended[],
  sampleRatio: number,
): Promise<Map<string, ExportedSpan[]>> {
  const spans = new Map<string, ExportedSpan[]>();
  for (const tenantId of new Set(ended.map(({ tenant_id }) => tenant_id))) {
    const own = ended.filter(({ tenant_id }) => tenant_id === tenantId);
    for (const [id, ofOne] of await spansOfTenant(db, tenantId, own, sampleRatio)) spans.set(id, ofOne);
  }
  return spans;
}
