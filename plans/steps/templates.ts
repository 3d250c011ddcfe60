import type { Part } from '../../contracts/a2a/parts.js';

/** Anything in double braces. Matched in linear time, whatever the text is. */
const BRACED = /\{\{([^{}]*)\}\}/g;
const OUTPUT = /^steps\.([A-Za-z0-9][A-Za-z0-9_-]{0,63})\.output$/;

/** The step whose output the content of double braces stands for; null for an invalid reference, undefined for other content. */
function stepIn(braced: string): string | null | undefined {
  const inner = braced.trim();
  return inner.startsWith('steps.') ? (OUTPUT.exec(inner)?.[1] ?? null) : undefined;
}

/** The references in the texts of a message: how often they name each step, and what looks like a reference and is none. */
export function referencesIn(parts: readonly Part[]): { uses: ReadonlyMap<string, number>; invalid: string[] } {
  const uses = new Map<string, number>();
  const invalid = new Set<string>();
  for (const part of parts) {
    if (part.kind !== 'text') continue;
    for (const [whole, inner = ''] of part.text.matchAll(BRACED)) {
      const stepId = stepIn(inner);
      if (stepId === null) invalid.add(whole);
      else if (stepId !== undefined) uses.set(stepId, (uses.get(stepId) ?? 0) + 1);
    }
  }
  return { uses, invalid: [...invalid] };
}

/**
 * Fills the outputs of steps into the texts of a message. An output is taken as it is: what looks like a reference in it stays. The texts grow
 * by the length of an output for each of its uses, which the caller has bounded.
 * @param outputs by the ids of steps; has every step that the texts name
 */
export function withOutputs(parts: readonly Part[], outputs: ReadonlyMap<string, string>): Part[] {
  return parts.map((part) => {
    if (part.kind !== 'text') return part;
    const text = part.text.replace(BRACED, (whole, inner: string) => outputs.get(stepIn(inner) ?? '') ?? whole);
    return { ...part, text };
  });
}
