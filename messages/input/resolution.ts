import type { Part } from '../../contracts/a2a/parts.js';
import { textOf } from '../../contracts/a2a/text.js';
import type { InputRequest } from '../../contracts/api/messages.js';
import type { InputRequestRow } from '../read/rows.js';
import { dataOfText } from './form.js';

/** A human's answer: the stored word, and the values of a form. */
export interface Decision {
  word: 'approved' | 'rejected' | 'submitted' | 'declined' | 'confirmed';
  positive: boolean;
  data?: Record<string, unknown>;
}

type Kind = InputRequest['kind'];

const YES: Record<Kind, Decision['word']> = { approval: 'approved', form: 'submitted', confirmation: 'confirmed' };
const NO: Record<Kind, Decision['word']> = { approval: 'rejected', form: 'declined', confirmation: 'declined' };
const POSITIVE = /^(approve|approved|confirm|confirmed|submit|submitted|accept|accepted|yes)$/i;
const NEGATIVE = /^(reject|rejected|decline|declined|deny|denied|cancel|no)$/i;

function byWord(kind: Kind, word: unknown): Decision | null {
  if (typeof word !== 'string') return null;
  if (POSITIVE.test(word.trim())) return { word: YES[kind], positive: true };
  return NEGATIVE.test(word.trim()) ? { word: NO[kind], positive: false } : null;
}

/**
 * Reads the `resolution` and `data` of `/messages/{id}/resolve`.
 * @returns null when it does not answer a request of this kind
 */
export function readResolution(
  kind: Kind,
  resolution: string | Record<string, unknown>,
  data?: Record<string, unknown>,
): Decision | null {
  if (typeof resolution === 'string') {
    const decision = byWord(kind, resolution);
    return decision && { ...decision, ...(data && { data }) };
  }
  const { decision: word, ...fields } = resolution;
  const values = { ...fields, ...data };
  const decision = byWord(kind, word);
  if (decision) return { ...decision, ...(Object.keys(values).length > 0 && { data: values }) };
  return kind === 'form' ? { word: 'submitted', positive: true, data: { ...resolution, ...data } } : null;
}

/**
 * Reads an A2A follow-up as an answer: a data part (field values, `{decision}`) or text (a word; for a form the value of its only field, or `{text}`).
 * @returns null when it does not answer a request of this kind
 */
export function readFollowUp(
  { kind, ...form }: Pick<InputRequestRow, 'kind' | 'schema' | 'fields'>,
  parts: readonly Part[],
): Decision | null {
  const data = parts.find((part) => part.kind === 'data');
  if (data) return readResolution(kind, data.data);
  const text = textOf(parts);
  if (text === '') return null;
  return kind === 'form' ? { word: 'submitted', positive: true, data: dataOfText(form, text) } : byWord(kind, text);
}
