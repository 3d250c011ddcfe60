import type { ReactNode } from 'react';
import { HEIGHT, pathOf, type Values, WIDTH } from './path.js';

const hourText = (iso: string) => new Date(iso).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });

/** Hours or days as bars or lines, with the figure in words and what each of them had on hover. */
export function Chart(props: {
  title: string;
  figure: ReactNode;
  note: ReactNode;
  times: readonly string[];
  /** A time in words, for the axis. */
  timeText?: (time: string) => string;
  /** The last of the times, in words. */
  last?: string;
  bars?: Values;
  lines?: { values: Values; className: string }[];
  tone?: 'bad';
  /** What one of the times had, in words. */
  words: (at: number) => string;
}) {
  const { title, figure, note, times, timeText = hourText, last = 'now', bars, lines = [], tone, words } = props;
  const max = Math.max(0, ...[bars ?? [], ...lines.map(({ values }) => values)].flat().map((value) => value ?? 0));
  const width = WIDTH / Math.max(1, times.length);
  return (
    <figure className={`chart${tone ? ` ${tone}` : ''}`}>
      <figcaption>
        <h2>{title}</h2>
        <p className="figure">{figure}</p>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        {bars?.map((value, at) => {
          const high = value ? Math.max(2, (value / max) * HEIGHT) : 1;
          const place = { x: at * width + 1, y: HEIGHT - high, width: width - 2, height: high };
          return <rect key={times[at]} className={value ? undefined : 'none'} {...place} />;
        })}
        {lines.map(({ values, className }) => (
          <path key={className} className={className} d={pathOf(values, max)} />
        ))}
        {times.map((time, at) => (
          <rect key={time} className="hover" x={at * width} y="0" width={width} height={HEIGHT}>
            <title>{`${timeText(time)}: ${words(at)}`}</title>
          </rect>
        ))}
      </svg>
      <p className="axis quiet small">
        <span>{times[0] && timeText(times[0])}</span>
        <span>{note}</span>
        <span>{last}</span>
      </p>
    </figure>
  );
}
