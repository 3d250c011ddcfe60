import type { Part } from './parts.js';

/** The text of all text parts, joined by line feeds. */
export function textOf(parts: readonly Part[]): string {
  return parts
    .filter((part) => part.kind === 'text')
    .map((part) => part.text)
    .join('\n');
}
