import { derivedSpanId } from '../../runtime/ids.js';
import type { DecisionFacts, MessageDetails, MessageFacts, RecordedFacts } from './facts.js';
import { grouped } from './grouped.js';
import { type MessageCourse, requestSpan } from './message-course.js';
import { movedInto, type Span, spanOf } from './span.js';

/** What a policy or a guard decided, at the moment of its event. */
function decisionSpan({ event_id, event_type, occurred_at, payload }: DecisionFacts, parent: Span): Span {
  const [by = '', decision = ''] = event_type.split('.');
  const text = (name: string) => (typeof payload[name] === 'string' ? payload[name] : undefined);
  return spanOf({
    span_id: derivedSpanId('decision', event_id),
    parent_span_id: parent.span_id,
    name: by,
    start: occurred_at,
    end: occurred_at,
    status: 'ok',
    attributes: {
      [`fleet.${by}.decision`]: decision,
      'fleet.policy.id': text('policy_id'),
      'fleet.policy.name': text('policy_name'),
      'fleet.guard.name': text('guard'),
      'fleet.action': text('action'),
      'gen_ai.tool.name': text('tool'),
    },
  });
}

const holds = ({ start, end }: Span, moment: Date) => start <= moment && (!end || moment <= end);

/** Tool calls and streams, each within the span that it is part of: its times are those of another clock. */
function recordedSpans(recorded: readonly RecordedFacts[], agents: readonly Span[]): Span[] {
  const byId = new Map(agents.map((agent) => [agent.span_id, agent]));
  return recorded.map((row) => {
    const { started_at: start, ended_at: end, error_type, attributes, message_id: _, ...fields } = row;
    const status = error_type === null ? 'ok' : 'error';
    const span = spanOf({ ...fields, start, end, status, attributes: { ...attributes, 'error.type': error_type } });
    const enclosing = byId.get(row.parent_span_id) ?? agents.find((agent) => holds(agent, start));
    const moved = movedInto(enclosing, span);
    byId.set(moved.span_id, moved);
    return moved;
  });
}

/** The calls of one tool, by time. */
class ToolCallSpans {
  /** By their starts. */
  readonly #calls: Span[];
  /** Until when one of the calls up to each place ran, in milliseconds. */
  readonly #latestEndMs: number[] = [];

  constructor(calls: readonly Span[]) {
    this.#calls = calls.toSorted((one, other) => one.start.getTime() - other.start.getTime());
    let latestMs = Number.NEGATIVE_INFINITY;
    for (const { end } of this.#calls) {
      latestMs = Math.max(latestMs, end?.getTime() ?? Number.POSITIVE_INFINITY);
      this.#latestEndMs.push(latestMs);
    }
  }

  /** Of those at work at a moment the one that began last: decisions and requests come as a call begins. */
  at(moment: Date): Span | undefined {
    let [begun, after] = [0, this.#calls.length];
    while (begun < after) {
      const middle = (begun + after) >> 1;
      if ((this.#calls[middle]?.start ?? moment) <= moment) begun = middle + 1;
      else after = middle;
    }
    for (let place = begun - 1; (this.#latestEndMs[place] ?? 0) >= moment.getTime(); place -= 1) {
      const call = this.#calls[place];
      if (call && holds(call, moment)) return call;
    }
    return undefined;
  }
}

/** What happened within the course of one message: decisions, tool calls, streams. @param details of this message alone */
export function spansWithin(
  { root, agents }: MessageCourse,
  message: MessageFacts,
  { recorded, decisions, requests }: MessageDetails,
): Span[] {
  const recordedOnes = recordedSpans(recorded, agents);
  const byTool = grouped(recordedOnes, ({ attributes }) => attributes['gen_ai.tool.name']);
  const calls = new Map([...byTool].map(([tool, spans]) => [tool, new ToolCallSpans(spans)]));
  /** What is about a tool call belongs to its span, else to that of the agent which made it. */
  const enclosing = (moment: Date, tool: unknown): Span => {
    if (typeof tool !== 'string') return root;
    return calls.get(tool)?.at(moment) ?? agents.findLast(({ start }) => start <= moment) ?? root;
  };
  const decided = decisions.map((event) => decisionSpan(event, enclosing(event.occurred_at, event.payload.tool)));
  const waits = requests
    .filter(({ stage }) => stage === 'tool')
    .map((request) => requestSpan(request, message, enclosing(request.requested_at, request.tool)));
  return [...decided, ...recordedOnes, ...waits];
}
