import { useSyncExternalStore } from 'react';
import { durationText } from './duration.js';

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

const whole = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** When something was: `2 min ago`, with the date and time on hover. */
export function Ago({ at, short = false }: { at: string; short?: boolean }) {
  const past = useNow() - Date.parse(at);
  const text = past < 5_000 ? 'now' : `${durationText(past)}${short ? '' : ' ago'}`;
  return (
    <time dateTime={at} title={whole.format(new Date(at))}>
      {text}
    </time>
  );
}

const SOON_MS = 600_000;

/** How long there is left, which turns red at the end. */
export function Countdown({ at }: { at: string }) {
  const left = Date.parse(at) - useNow();
  return (
    <time dateTime={at} title={whole.format(new Date(at))} className={left < SOON_MS ? 'soon' : undefined}>
      {left > 0 ? `${durationText(left)} left` : 'time is up'}
    </time>
  );
}

/** When something comes: `in 4 s`. */
export function Until({ at }: { at: string }) {
  const left = Date.parse(at) - useNow();
  return (
    <time dateTime={at} title={whole.format(new Date(at))}>
      {left > 0 ? `in ${durationText(left)}` : 'now'}
    </time>
  );
}

/** The time of day with milliseconds, for a timeline. */
export function Clock({ at }: { at: string }) {
  const date = new Date(at);
  const text = date.toLocaleTimeString(undefined, { hour12: false });
  return (
    <time dateTime={at} title={whole.format(date)}>
      {text}
      <small>.{String(date.getMilliseconds()).padStart(3, '0')}</small>
    </time>
  );
}
