import { LIMITS } from '../../contracts/limits.js';
import type { CountedDetails, CourseFacts, MessageDetails, MessageFacts } from './facts.js';
import { grouped } from './grouped.js';
import { messageCourse } from './message-course.js';
import { spansWithin } from './message-spans.js';
import type { Span } from './span.js';

/** The part of a trace that one message or plan is. */
export interface TracePart {
  /** Those of its spans that say when it began and ended. */
  course: Span[];
  /** How many spans it has in all. */
  count: number;
  /** Whether there are more, which the trace does not have. */
  isTruncated: boolean;
}

/** A part with all its spans. */
export interface DerivedPart extends TracePart {
  spans: Span[];
}

type Shown<Facts> = Facts & { isTruncated: boolean };

const ofMessage = ({ message_id }: { message_id: string }) => message_id;
const isBeyond = (count: number) => count > LIMITS.spansPerKind;
const shown = <Row>(rows: readonly Row[] = []): Row[] => rows.slice(0, LIMITS.spansPerKind);

/** What the course of each message is derived from: `LIMITS.spansPerKind` of each kind at most. */
function courses(facts: CourseFacts): (messageId: string) => Shown<CourseFacts> {
  const dispatches = grouped(facts.dispatches, ofMessage);
  const events = grouped(facts.events, ofMessage);
  const requests = grouped(facts.requests, ofMessage);
  return (messageId) => {
    const all = [dispatches.get(messageId), requests.get(messageId)];
    return {
      dispatches: shown(dispatches.get(messageId)),
      events: events.get(messageId) ?? [],
      requests: shown(requests.get(messageId)),
      isTruncated: all.some((rows) => isBeyond(rows?.length ?? 0)),
    };
  };
}

/** Messages with their spans, by their ids. @param details one row more of a kind than is shown says that there are more */
export function spansOfMessages(messages: readonly MessageFacts[], details: MessageDetails): Map<string, DerivedPart> {
  const factsOf = courses(details);
  const decisions = grouped(details.decisions, ofMessage);
  const recorded = grouped(details.recorded, ofMessage);
  return new Map(
    messages.map((message) => {
      const facts = factsOf(message.message_id);
      const [decided = [], called = []] = [decisions.get(message.message_id), recorded.get(message.message_id)];
      const isTruncated = facts.isTruncated || isBeyond(decided.length) || isBeyond(called.length);
      const course = messageCourse(message, facts, isTruncated);
      const within = { ...facts, decisions: shown(decided), recorded: shown(called) };
      const spans = [...course.spans, ...spansWithin(course, message, within)];
      return [message.message_id, { course: course.spans, spans, count: spans.length, isTruncated }];
    }),
  );
}

/** As `spansOfMessages`, without the spans that are only counted. */
export function countsOfMessages(messages: readonly MessageFacts[], details: CountedDetails): Map<string, TracePart> {
  const factsOf = courses(details);
  const counts = new Map(details.counts.map((counted) => [counted.message_id, counted]));
  return new Map(
    messages.map((message) => {
      const facts = factsOf(message.message_id);
      const { decisions = 0, recorded = 0 } = counts.get(message.message_id) ?? {};
      const isTruncated = facts.isTruncated || isBeyond(decisions) || isBeyond(recorded);
      const { spans: course } = messageCourse(message, facts, isTruncated);
      const ofTools = facts.requests.filter(({ stage }) => stage === 'tool').length;
      const within = Math.min(decisions, LIMITS.spansPerKind) + Math.min(recorded, LIMITS.spansPerKind) + ofTools;
      return [message.message_id, { course, count: course.length + within, isTruncated }];
    }),
  );
}
