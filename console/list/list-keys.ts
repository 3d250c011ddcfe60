import { type RefObject, useEffect } from 'react';
import { useKeys } from '../parts/keys.js';
import { WIDE } from '../parts/media.js';

/**
 * How the keyboard moves through a list with a detail. On a wide screen the first of the list is shown at once.
 * @param ids of the rows, each an element `row-ID`
 * @param select shows another one
 */
export function useListKeys({
  ids,
  current,
  select,
  close,
  field,
  more = {},
}: {
  ids: readonly string[];
  current: string | undefined;
  select: (id: string) => void;
  close: () => void;
  field: RefObject<HTMLInputElement | HTMLSelectElement | null>;
  more?: Record<string, () => void>;
}): void {
  const first = ids[0];
  // biome-ignore lint/correctness/useExhaustiveDependencies: `select` is another function each time
  useEffect(() => {
    if (current === undefined && first !== undefined && matchMedia(WIDE).matches) select(first);
  }, [current, first]);
  const index = current === undefined ? -1 : ids.indexOf(current);
  const go = (at: number) => {
    const id = ids[at];
    if (id === undefined) return;
    select(id);
    document.getElementById(`row-${id}`)?.scrollIntoView({ block: 'nearest' });
  };
  const [down, up] = [() => go(index + 1), () => go(Math.max(0, index - 1))];
  useKeys({
    ...{ j: down, arrowdown: down, k: up, arrowup: up, '/': () => field.current?.focus(), escape: close },
    ...more,
  });
}
