import type { ReactNode } from 'react';
import { HEIGHT, pathOf, type Values, WIDTH } from './path.js';

const hourText = (iso: string) => new Date(iso).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });

/** A day in hours, as bars or lines, with its figure in words and what each hour had on hover. */
export function Chart(props: {
  title: string;
  figure: ReactNode;
  note: ReactNode;
  hours: readonly string[];
  bars?: Values;
  lines?: { values: Values; className: string }[];
  tone?: 'bad';
  /** What an hour had, in words. */
  words: (at: number) => string;
}) {
  const { title, figure, note, hours, bars, lines = [], tone, words } = props;
  const max = Math.max(0, ...[bars ?? [], ...lines.map(({ values }) => values)].flat().map((value) => value ?? 0));
  const width = WIDTH / Math.max(1, hours.length);
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
          return <rect key={hours[at]} className={value ? undefined : 'none'} {...place} />;
        })}
        {lines.map(({ values, className }) => (
          <path key={className} className={className} d={pathOf(values, max)} />
        ))}
        {hours.map((hour, at) => (
          <rect key={hour} className="hover" x={at * width} y="0" width={width} height={HEIGHT}>
            <title>{`${hourText(hour)}: ${words(at)}`}</title>
          </rect>
        ))}
      </svg>
      <p className="axis quiet small">
        <span>{hours[0] && hourText(hours[0])}</span>
        <span>{note}</span>
        <span>now</span>
      </p>
    </figure>
  );
}
