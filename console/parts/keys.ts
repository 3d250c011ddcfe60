import { useEffect, useRef } from 'react';

/** Whether keys belong to what has the focus, or to a dialog. */
function isTaken({ target }: KeyboardEvent): boolean {
  const isField = target instanceof Element && target.closest('input, textarea, select, [contenteditable]') !== null;
  return isField || document.querySelector('dialog[open]') !== null;
}

/** `a`, `shift+a`, `?`, `arrowdown`. */
function nameOf({ key, shiftKey }: KeyboardEvent): string {
  const lower = key.toLowerCase();
  return shiftKey && /^[a-z]$/.test(lower) ? `shift+${lower}` : lower;
}

/** Shortcuts of a view. None works while somebody writes, or with a modifier but Shift. */
export function useKeys(keys: Record<string, (event: KeyboardEvent) => void>): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTaken(event)) return;
      const act = latest.current[nameOf(event)];
      if (!act) return;
      event.preventDefault();
      act(event);
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
}
