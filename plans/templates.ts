import type { Part } from '../contracts/a2a/parts.js';

/** What begins as a reference to a step, whether it is a valid one or not. */
const REFERENCE = /\{\{\s*steps\.([^{}]*?)\s*\}\}/g;
const OUTPUT = /^([A-Za-z0-9][A-Za-z0-9_-]{0,63})\.output$/;

/** The references in the texts of a message: ids of steps, and what looks like a reference and is none. */
export function referencesIn(parts: readonly Part[]): { stepIds: string[]; invalid: string[] } {
  const stepIds = new Set<string>();
  const invalid = new Set<string>();
  for (const part of parts) {
    if (part.kind !== 'text') continue;
    for (const [whole, inner = ''] of part.text.matchAll(REFERENCE)) {
      const stepId = OUTPUT.exec(inner)?.[1];
      if (stepId === undefined) invalid.add(whole);
      else stepIds.add(stepId);
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
    const text = part.text.replace(REFERENCE, (whole, inner: string) => {
      const stepId = OUTPUT.exec(inner)?.[1] ?? '';
      return outputs.get(stepId) ?? whole;
    });
    return { ...part, text };
  });
}
