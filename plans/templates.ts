import type { Part } from '../contracts/a2a/parts.js';

/** Anything in double braces. Matched in linear time, whatever the text is. */
const BRACED = /\{\{([^{}]*)\}\}/g;
const OUTPUT = /^steps\.([A-Za-z0-9][A-Za-z0-9_-]{0,63})\.output$/;

/** The step whose output the content of double braces stands for; null for an invalid reference, undefined for other content. */
function stepIn(braced: string): string | null | undefined {
  const inner = braced.trim();
  return inner.startsWith('steps.') ? (OUTPUT.exec(inner)?.[1] ?? null) : undefined;
}

/** The references in the texts of a message: ids of steps, and what looks like a reference and is none. */
export function referencesIn(parts: readonly Part[]): { stepIds: string[]; invalid: string[] } {
  const stepIds = new Set<string>();
  const invalid = new Set<string>();
  for (const part of parts) {
    if (part.kind !== 'text') continue;
    for (const [whole, inner = ''] of part.text.matchAll(BRACED)) {
      const stepId = stepIn(inner);
      if (stepId === null) invalid.add(whole);
      else if (stepId !== undefined) stepIds.add(stepId);
    }
  }
  return { stepIds: [...stepIds], invalid: [...invalid] };
}

/**
 * Fills the outputs of steps into the texts of a message. An output is taken as it is: what looks like a reference in it stays.
 * @param outputs by the ids of steps; has every step that the texts name
 */
export function withOutputs(parts: readonly Part[], outputs: ReadonlyMap<string, string>): Part[] {
  return parts.map((part) => {
    if (part.kind !== 'text') return part;
    const text = part.text.replace(BRACED, (whole, inner: string) => outputs.get(stepIn(inner) ?? '') ?? whole);
    return { ...part, text };
  });
}
