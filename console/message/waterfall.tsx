import type { EventRecord } from '../../contracts/api/telemetry.js';
import { tookText } from '../messages/words.js';
import { useNow } from '../parts/time.js';
import { barsOf } from './bars.js';

/** Too few to show how the time was spent. */
const BARS_MIN = 3;

/** How the time of a message was spent, as bars over time. It goes on while the message runs. */
export function Waterfall({ events }: { events: readonly EventRecord[] }) {
  const bars = barsOf(events, useNow());
  const from = bars[0]?.startMs ?? 0;
  const total = Math.max(1, ...bars.map(({ endMs }) => endMs - from));
  const share = (ms: number) => `${(100 * ms) / total}%`;
  if (bars.length < BARS_MIN) return null;
  return (
    <ol className="waterfall" aria-label="How the time was spent">
      {bars.map(({ kind, label, startMs, endMs, isOpen, isBad }, index) => {
        const isMark = endMs === startMs && !isOpen;
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: bars have no ids, and new ones come last
          <li key={index} data-kind={isBad ? 'bad' : kind}>
            <span className="cut">{label}</span>
            <span className="track" aria-hidden="true">
              <span
                className={isMark ? 'mark' : isOpen ? 'bar goes-on' : 'bar'}
                style={{ left: share(startMs - from), width: isMark ? undefined : share(endMs - startMs) }}
              />
            </span>
            <span className="quiet small">
              {isMark ? `at ${tookText(startMs - from)}` : tookText(endMs - startMs)}
              {isOpen && ' so far'}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
