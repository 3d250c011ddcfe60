import type { Trace, TraceStatus, TraceSummary } from '../../contracts/api/telemetry.js';
import { LIMITS } from '../../contracts/limits.js';
import { inKeyOrder } from '../../db/pages/page.js';
import type { Db, Tx } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import { uuidOf } from '../../runtime/ids.js';
import { countsOfMessages, spansOfMessages, type TracePart } from './derive.js';
import type { MessageFacts, PlanFacts } from './facts.js';
import { grouped } from './grouped.js';
import { planSpans } from './plan-spans.js';
import { countedDetailsOf, detailsOf, inPortions } from './read-details.js';
import { messagesOfTraces, plansOfTraces, stepsOf } from './read-facts.js';
import { inOrder, type Span, shownSpan } from './span.js';
import { TraceExtent } from './trace-extent.js';

/** The status of a trace by the state of the message or plan that began it; other states are `running`. */
const STATUS_OF: Record<string, TraceStatus> = {
  completed: 'ok',
  failed: 'error',
  canceled: 'canceled',
  rejected: 'canceled',
};

/** The states of messages and plans that give a trace this status. */
export const STATES_OF: Record<TraceStatus, readonly string[]> = {
  running: ['submitted', 'working', 'input-required', 'proposed', 'running'],
  ok: ['completed'],
  error: ['failed'],
  canceled: ['canceled', 'rejected'],
};

type Root = Pick<PlanFacts, 'tenant_id' | 'session_id' | 'state' | 'root_agent'>;

/** A trace: what it consists of, the oldest first, and what began it. */
export interface TraceRecord {
  trace_id: string;
  root: Root;
  /** `LIMITS.messagesPerTrace` at most. */
  messages: MessageFacts[];
  hasMoreMessages: boolean;
  plans: PlanFacts[];
}

/**
 * What began the trace: the message or plan that it has its id from; of a caller's trace the first plan, else the first message. The list of
 * traces goes by the same rule (trace-list.ts).
 */
function rootOf(traceId: string, messages: readonly MessageFacts[], plans: readonly PlanFacts[]): Root | undefined {
  const begins = (id: string) => uuidOf(id).replaceAll('-', '') === traceId;
  const asRoot = (message: MessageFacts | undefined): Root | undefined =>
    message && { ...message, root_agent: message.agent_type ?? message.want_agent_type };
  const own = messages.find(({ message_id }) => begins(message_id));
  return asRoot(own) ?? plans[0] ?? asRoot(messages[0]);
}

/** The traces of these ids that are on the record, in their order. */
export async function readTraces(tx: Tx, tenantId: string, traceIds: readonly string[]): Promise<TraceRecord[]> {
  const ofTrace = ({ trace_id }: { trace_id: string }) => trace_id;
  const messagesBy = grouped(await messagesOfTraces(tx, tenantId, traceIds), ofTrace);
  const plansBy = grouped(await plansOfTraces(tx, tenantId, traceIds), ofTrace);
  return traceIds.flatMap((trace_id) => {
    const [all = [], plans = []] = [messagesBy.get(trace_id), plansBy.get(trace_id)];
    const root = rootOf(trace_id, all, plans);
    if (!root) return [];
    const messages = all.slice(0, LIMITS.messagesPerTrace);
    return { trace_id, root, messages, hasMoreMessages: all.length > messages.length, plans };
  });
}

/** A trace in a list. */
export function summaryOf(
  { trace_id, root: { session_id, tenant_id, root_agent, state }, hasMoreMessages }: TraceRecord,
  extent: TraceExtent,
): TraceSummary {
  const status = STATUS_OF[state] ?? 'running';
  return { trace_id, session_id, tenant_id, root_agent, status, ...extent.summary(hasMoreMessages) };
}

/** Messages whose spans are derived at once. */
const AT_ONCE = 20;

/**
 * Derives the spans of a trace, a few messages at a time: those beyond `LIMITS.spansPerTrace` are only counted.
 */
async function deriveTrace(tx: Tx, tenantId: string, record: TraceRecord): Promise<Trace> {
  const extent = new TraceExtent();
  const spans: Span[] = [];
  const stepsBy = grouped(await stepsOf(tx, tenantId, record.plans), ({ plan_id }) => plan_id);
  for (const plan of record.plans) {
    const part = planSpans(plan, stepsBy.get(plan.plan_id) ?? []);
    extent.add(part);
    spans.push(...part.spans);
  }
  const derive = async (portion: readonly MessageFacts[]): Promise<Iterable<TracePart & { spans?: Span[] }>> => {
    if (spans.length < LIMITS.spansPerTrace)
      return spansOfMessages(portion, await detailsOf(tx, tenantId, portion)).values();
    return countsOfMessages(portion, await countedDetailsOf(tx, tenantId, portion)).values();
  };
  for await (const { found } of inPortions(record.messages, AT_ONCE, derive)) {
    for (const part of found) {
      extent.add(part);
      spans.push(...(part.spans ?? []));
    }
  }
  const shown = inOrder(spans.slice(0, LIMITS.spansPerTrace)).map(shownSpan);
  return { ...summaryOf(record, extent), spans: shown };
}

/**
 * Reads a trace with its spans, which are derived from the record.
 * @throws PlatformError NOT_FOUND; REQUEST_TIMEOUT when a statement takes longer than ten seconds
 */
export function readTrace(db: Db, tenantId: string, traceId: string): Promise<Trace> {
  return inKeyOrder(db, tenantId, async (tx) => {
    const [record] = await readTraces(tx, tenantId, [traceId]);
    if (record) return deriveTrace(tx, tenantId, record);
    throw new PlatformError('NOT_FOUND', 'There is no trace of that trace_id.');
  });
}
