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

const CHORD_MS = 1_200;

/** Shortcuts that follow a first key. What the second key does elsewhere (`A` approves) does not happen. */
export function useChord(first: string, keys: Record<string, () => void>): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    let until = 0;
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTaken(event)) return;
      const name = nameOf(event);
      const act = Date.now() < until ? latest.current[name] : undefined;
      until = name === first ? Date.now() + CHORD_MS : 0;
      if (!act) return;
      event.preventDefault();
      event.stopPropagation();
      act();
    };
    // Before the shortcuts of the views.
    document.addEventListener('keydown', onKey, { capture: true });
    return () => document.removeEventListener('keydown', onKey, { capture: true });
  }, [first]);
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
