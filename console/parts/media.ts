import { useSyncExternalStore } from 'react';

/** Where a list and its detail have room beside each other. */
export const WIDE = '(min-width: 761px)';

/** Whether a media query holds. */
export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (listener) => {
      const media = matchMedia(query);
      media.addEventListener('change', listener);
      return () => media.removeEventListener('change', listener);
    },
    () => matchMedia(query).matches,
  );
}
