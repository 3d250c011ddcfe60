/** A human's answer: the stored word, and the values of a form. */
export interface Decision {
  word: 'approved' | 'rejected' | 'submitted' | 'declined' | 'confirmed';
  positive: boolean;
  data?: Record<string, unknown>;
}

type Kind = 'approval' | 'form' | 'confirmation';

const YES: Record<Kind, Decision['word']> = { approval: 'approved', form: 'submitted', confirmation: 'confirmed' };
const NO: Record<Kind, Decision['word']> = { approval: 'rejected', form: 'declined', confirmation: 'declined' };
const POSITIVE = new Set([
  'approved',
  'approve',
  'confirmed',
  'confirm',
  'submitted',
  'submit',
  'accept',
  'accepted',
  'yes',
]);
const NEGATIVE = new Set(['rejected', 'reject', 'declined', 'decline', 'denied', 'deny', 'cancel', 'no']);

function byWord(kind: Kind, word: string): Decision | null {
  const lower = word.trim().toLowerCase();
  if (POSITIVE.has(lower)) return { word: YES[kind], positive: true };
  if (NEGATIVE.has(lower)) return { word: NO[kind], positive: false };
  return null;
}

/**
 * Reads the `resolution` and `data` of `/messages/{id}/resolve` (decisions.md, Messages).
 * @returns null when it does not answer a request of this kind
 */
export function readResolution(
  kind: Kind,
  resolution: string | Record<string, unknown>,
  data: Record<string, unknown> | undefined,
): Decision | null {
  if (typeof resolution === 'string') {
    const decision = byWord(kind, resolution);
    return decision && { ...decision, ...(data && { data }) };
  }
  const { decision: word, ...fields } = resolution;
  const values = { ...fields, ...data };
  const hasValues = Object.keys(values).length > 0;
  if (typeof word === 'string') {
    const decision = byWord(kind, word);
    if (decision) return { ...decision, ...(hasValues && { data: values }) };
  }
  return kind === 'form' ? { word: 'submitted', positive: true, data: { ...resolution, ...data } } : null;
}

/**
 * Reads an A2A follow-up as an answer: a data part (field values, `{decision}`) or text (a word; for a form `{text}`).
 * @returns null when it does not answer a request of this kind
 */
export function readFollowUp(
  kind: Kind,
  parts: readonly (
    | { kind: 'text'; text: string }
    | { kind: 'data'; data: Record<string, unknown> }
    | { kind: 'file' }
  )[],
): Decision | null {
  const data = parts.find((part) => part.kind === 'data');
  if (data) return readResolution(kind, data.data, undefined);
  const text = parts
    .filter((part) => part.kind === 'text')
    .map((part) => part.text)
    .join('\n');
  if (text === '') return null;
  if (kind === 'form') return { word: 'submitted', positive: true, data: { text } };
  return byWord(kind, text);
}
