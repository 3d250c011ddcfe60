import { type RefObject, useEffect } from 'react';
import { useKeys } from '../parts/keys.js';
import { WIDE } from '../parts/media.js';

/**
 * How the keyboard moves through a list of which one row is selected: J and K, `/` finds, Escape closes. On a wide screen one is shown at once.
 * @param ids of the rows, which are also those of their elements
 * @param first the row that is shown at once, where it is not the first
 * @param field in which `/` finds
 * @param more further keys, or other ones
 */
export function useListKeys({
  ids,
  current,
  first = ids[0],
  select,
  close,
  field,
  more = {},
}: {
  ids: readonly string[];
  current: string | undefined;
  first?: string | undefined;
  select: (id: string) => void;
  close: () => void;
  field?: RefObject<HTMLInputElement | HTMLSelectElement | null>;
  more?: Record<string, () => void>;
}): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: `select` is another function each time
  useEffect(() => {
    if (current === undefined && first !== undefined && matchMedia(WIDE).matches) select(first);
  }, [current, first]);
  const index = current === undefined ? -1 : ids.indexOf(current);
  const go = (at: number) => {
    const id = ids[at];
    if (id === undefined) return;
    select(id);
    document.getElementById(id)?.scrollIntoView({ block: 'nearest' });
  };
  const [down, up] = [() => go(index + 1), () => go(Math.max(0, index - 1))];
  useKeys({
    ...{ j: down, arrowdown: down, k: up, arrowup: up, '/': () => field?.current?.focus(), escape: close },
    ...more,
  });
}
