import type { Trace, TraceStatus } from '../../contracts/api/telemetry.js';
import { LIMITS } from '../../contracts/limits.js';
import { inKeyOrder } from '../../db/page.js';
import type { Db, Tx } from '../../db/pool.js';
import { PlatformError } from '../../runtime/errors.js';
import { uuidOf } from '../../runtime/ids.js';
import { spansOfMessages } from './derive.js';
import type { MessageFacts, PlanFacts, StepFacts } from './facts.js';
import { planSpans } from './plan-spans.js';
import { detailsOf, messagesOfTraces, plansOfTraces, stepsOf } from './read-facts.js';
import { inOrder, type Span, shownSpan } from './span.js';

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

/** What a trace consists of. */
interface Parts {
  messages: MessageFacts[];
  plans: PlanFacts[];
  steps: StepFacts[];
}

type Root = Pick<PlanFacts, 'tenant_id' | 'session_id' | 'state' | 'root_agent'>;

/**
 * What began the trace: the message or plan that it has its id from; of a caller's trace the first plan, else the first message. The list of
 * traces goes by the same rule (trace-list.ts).
 */
function rootOf(traceId: string, { messages, plans }: Parts): Root | undefined {
  const begins = (id: string) => uuidOf(id).replaceAll('-', '') === traceId;
  const asRoot = (message: MessageFacts | undefined): Root | undefined =>
    message && { ...message, root_agent: message.agent_type ?? message.want_agent_type };
  const own = messages.find(({ message_id }) => begins(message_id));
  return asRoot(own) ?? plans[0] ?? asRoot(messages[0]);
}

const timeOf = (times: Date[], pick: (one: number, other: number) => number) =>
  new Date(times.map((at) => at.getTime()).reduce(pick));

function traceOf(trace_id: string, parts: Parts, spans: Span[]): Trace | undefined {
  const root = rootOf(trace_id, parts);
  if (!root) return undefined;
  const { session_id, tenant_id, root_agent, state } = root;
  const started = timeOf(
    spans.map(({ start }) => start),
    (one, other) => Math.min(one, other),
  );
  const isRunning = spans.some(({ end }) => end === null);
  const ended = isRunning
    ? null
    : timeOf(
        spans.map(({ start, end }) => end ?? start),
        (one, other) => Math.max(one, other),
      );
  return {
    trace_id,
    session_id,
    tenant_id,
    root_agent,
    status: STATUS_OF[state] ?? 'running',
    started_at: started.toISOString(),
    ended_at: ended?.toISOString() ?? null,
    duration_ms: ended && ended.getTime() - started.getTime(),
    span_count: spans.length,
    ...(parts.messages.length > LIMITS.messagesPerTrace && { truncated: true as const }),
    spans: inOrder(spans).map(shownSpan),
  };
}

/** The traces of these ids that are on the record, in their order. */
export async function tracesOf(tx: Tx, tenantId: string, traceIds: readonly string[]): Promise<Trace[]> {
  const messages = await messagesOfTraces(tx, tenantId, traceIds);
  const plans = await plansOfTraces(tx, tenantId, traceIds);
  const steps = await stepsOf(tx, tenantId, plans);
  const shown = traceIds.flatMap((traceId) =>
    messages.filter(({ trace_id }) => trace_id === traceId).slice(0, LIMITS.messagesPerTrace),
  );
  const spansBy = spansOfMessages(shown, await detailsOf(tx, tenantId, shown));
  return traceIds.flatMap((traceId) => {
    const parts = {
      messages: messages.filter(({ trace_id }) => trace_id === traceId),
      plans: plans.filter(({ trace_id }) => trace_id === traceId),
      steps,
    };
    const ofPlans = parts.plans.flatMap((plan) =>
      planSpans(
        plan,
        steps.filter(({ plan_id }) => plan_id === plan.plan_id),
      ),
    );
    const ofMessages = parts.messages.flatMap(({ message_id }) => spansBy.get(message_id) ?? []);
    return traceOf(traceId, parts, [...ofPlans, ...ofMessages]) ?? [];
  });
}

/**
 * Reads a trace with its spans, which are derived from the record.
 * @throws PlatformError NOT_FOUND; REQUEST_TIMEOUT when a statement takes longer than ten seconds
 */
export async function readTrace(db: Db, tenantId: string, traceId: string): Promise<Trace> {
  const [trace] = await inKeyOrder(db, tenantId, (tx) => tracesOf(tx, tenantId, [traceId]));
  if (trace) return trace;
  throw new PlatformError('NOT_FOUND', 'There is no trace of that trace_id.');
}
