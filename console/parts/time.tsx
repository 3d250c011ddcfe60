import { type ReactNode, useSyncExternalStore } from 'react';
import { durationText } from './texts.js';

export { durationText };

const listeners = new Set<() => void>();
let now = Date.now();
let ticking: ReturnType<typeof setInterval> | undefined;

/** The time, each second. All users share one clock. */
export function useNow(): number {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      ticking ??= setInterval(() => {
        now = Date.now();
        for (const each of listeners) each();
      }, 1_000);
      return () => {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        clearInterval(ticking);
        ticking = undefined;
      };
    },
    () => now,
  );
}

/** A date and time as people write it. Its format takes long to make, so that it is made once somebody wants it. */
export function wholeTime(at: string): string {
  whole ??= new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
  return whole.format(new Date(at));
}
let whole: Intl.DateTimeFormat | undefined;

/** A time in other words, with the date and time on hover. */
function Time({ at, className, children }: { at: string; className?: string | undefined; children: ReactNode }) {
  return (
    <time
      dateTime={at}
      className={className}
      onPointerEnter={({ currentTarget }) => {
        currentTarget.title = wholeTime(at);
      }}
    >
      {children}
    </time>
  );
}

/** When something was: `2 min ago`. */
export function Ago({ at, short = false }: { at: string; short?: boolean }) {
  const past = useNow() - Date.parse(at);
  return <Time at={at}>{past < 5_000 ? 'now' : `${durationText(past)}${short ? '' : ' ago'}`}</Time>;
}

const SOON_MS = 600_000;

/** How long there is left, which turns red at the end. */
export function Countdown({ at }: { at: string }) {
  const left = Date.parse(at) - useNow();
  return (
    <Time at={at} className={left < SOON_MS ? 'soon' : undefined}>
      {left > 0 ? `${durationText(left)} left` : 'time is up'}
    </Time>
  );
}

/** When something comes: `in 4 s`. */
export function Until({ at }: { at: string }) {
  const left = Date.parse(at) - useNow();
  return <Time at={at}>{left > 0 ? `in ${durationText(left)}` : 'now'}</Time>;
}

/** The time of day with milliseconds, for a timeline. */
export function Clock({ at }: { at: string }) {
  const date = new Date(at);
  return (
    <Time at={at}>
      {date.toLocaleTimeString(undefined, { hour12: false })}
      <small>.{String(date.getMilliseconds()).padStart(3, '0')}</small>
    </Time>
  );
}
