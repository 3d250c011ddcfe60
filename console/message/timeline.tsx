import { useQuery } from '@tanstack/react-query';
import type { EventRecord } from '../../contracts/api/telemetry.js';
import { call } from '../api/call.js';
import { Failed, Loading } from '../parts/states.js';
import { Clock, durationText } from '../parts/time.js';
import { Waterfall } from './waterfall.js';

const PAGE_SIZE = 100;

const NAMES: Record<string, string> = {
  'message.received': 'Accepted',
  'dispatch.sent': 'Sent to an agent',
  'dispatch.success': 'The agent answered',
  'dispatch.failed': 'The agent’s turn failed',
  'message.input_required': 'A person is asked',
  'message.resolved': 'Decided',
  'message.decision_effect': 'What came of the decision',
  'message.completed': 'Completed',
  'message.error': 'Failed',
  'message.canceled': 'Canceled',
  'policy.approval_required': 'A policy asks a person',
  'policy.denied': 'A policy denied it',
  'policy.audited': 'A policy noted it',
  'guard.allowed': 'A guard let it pass',
  'guard.denied': 'A guard denied it',
  'guard.approval_required': 'A guard asks a person',
};

/** Members that each line of the timeline has anyway. */
const KNOWN = new Set([
  'message_id',
  'session_id',
  'tenant_id',
  'duration_ms',
  'request_id',
  'dispatch_id',
  'policy_id',
]);

/** What an event tells beyond its name. */
function detailsOf({ event }: EventRecord): string {
  const { duration_ms } = event;
  const said = Object.entries(event)
    .filter(([name, value]) => !KNOWN.has(name) && value !== null && value !== '')
    .map(
      ([name, value]) => `${name.replaceAll('_', ' ')}: ${typeof value === 'object' ? JSON.stringify(value) : value}`,
    );
  return [...said, ...(typeof duration_ms === 'number' ? [`after ${took(duration_ms)}`] : [])].join(' · ');
}

const took = (ms: number) => (ms < 1_000 ? `${ms} ms` : durationText(ms));

/** Gaps that are worth a line. */
const GAP_MS = 1_000;

/** What happened to a message, in order, with the waits between. */
export function Timeline({ messageId }: { messageId: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ['events', messageId],
    queryFn: async () => {
      const { events, count } = await call('/telemetry/get_events', { message_id: messageId, page_size: PAGE_SIZE });
      const inOrder = events.toSorted(
        (one, other) => one.timestamp.localeCompare(other.timestamp) || one.event_id.localeCompare(other.event_id),
      );
      return { events: inOrder, older: count - events.length };
    },
  });
  return (
    <section>
      <h2>Timeline</h2>
      {error && !data && <Failed error={error} retry={() => void refetch()} />}
      {!data && !error && <Loading rows={3} />}
      {data && data.older > 0 && <p className="quiet">{data.older} older events are left out.</p>}
      {data && <Waterfall events={data.events} />}
      <ol className="timeline">
        {data?.events.map((event, index) => {
          const before = data.events[index - 1];
          const gap = before ? Date.parse(event.timestamp) - Date.parse(before.timestamp) : 0;
          return (
            <li key={event.event_id} className={event.severity}>
              {gap >= GAP_MS && <span className="gap">{durationText(gap)} later</span>}
              <Clock at={event.timestamp} />
              <span>
                <strong>{NAMES[event.event_type] ?? event.event_type}</strong>
                <span className="quiet details">{detailsOf(event)}</span>
              </span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
