import { type RefObject, useEffect } from 'react';
import { useKeys } from './keys.js';
import { WIDE } from './media.js';

/**
 * A list of which one row is selected: J and K go through it, `/` finds, Escape closes. On a wide screen one is shown at once.
 * @param ids of the rows that are shown, which are also those of their elements
 * @param first the row that is shown at once, where it is not the first
 */
export function useRows({
  ids,
  current,
  first = ids[0],
  select,
  close,
  field,
}: {
  ids: readonly string[];
  current: string | undefined;
  first?: string | undefined;
  select: (id: string) => void;
  close: () => void;
  field?: RefObject<HTMLInputElement | null>;
}): void {
  useEffect(() => {
    if (current === undefined && first !== undefined && matchMedia(WIDE).matches) select(first);
  });
  const index = current === undefined ? -1 : ids.indexOf(current);
  const go = (at: number) => {
    const id = ids[at];
    if (id === undefined) return;
    select(id);
    document.getElementById(id)?.scrollIntoView({ block: 'nearest' });
  };
  const next = () => go(index + 1);
  const previous = () => go(Math.max(0, index - 1));
  useKeys({
    j: next,
    arrowdown: next,
    k: previous,
    arrowup: previous,
    '/': () => field?.current?.focus(),
    escape: close,
  });
}
