import type { PolicyBody } from './draft.js';

/** A policy as a form and as JSON show it at once. `problem`: why the JSON cannot be read; `body` is what could be read last. */
export interface Edited {
  body: PolicyBody;
  json: string;
  problem?: string;
}

/** What is edited, from a policy. */
export function editedOf(body: PolicyBody): Edited {
  return { body, json: JSON.stringify(body, null, 2) };
}

/** A change by the JSON, which may not be readable yet. */
export function withJson(edited: Edited, json: string): Edited {
  try {
    const body: unknown = JSON.parse(json);
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) return { body: body as PolicyBody, json };
    return { ...edited, json, problem: 'A policy is an object: { … }' };
  } catch (error) {
    return { ...edited, json, problem: error instanceof Error ? error.message : String(error) };
  }
}

/** Whether a policy may have a bound on the calls that it allows. */
export function countsCalls({ scope, decision }: Pick<PolicyBody, 'scope' | 'decision'>): boolean {
  return scope === 'tool' && decision === 'allow';
}

/** A member as an object; the JSON may have anything there. */
export function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

/** A member as lines of a field. */
export function linesOf(value: unknown): string {
  return Array.isArray(value) ? value.map(String).join('\n') : '';
}

/** The lines of a field as a list; undefined for none. */
export function listOf(text: string): string[] | undefined {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  return lines.length > 0 ? lines : undefined;
}

/** The value of a condition as a field shows it: a text as it is, unless it reads as something else. */
export function valueText(value: unknown): string {
  return typeof value === 'string' && readValue(value) === value ? value : JSON.stringify(value);
}

/** What a field of a condition says: a number, `true`, `null`, a list or a text in quotation marks as JSON, anything else as a text. */
export function readValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A condition on an argument, as the form edits it. */
export interface Condition {
  path: string;
  op: string;
  value: unknown;
}

/** The conditions on arguments; what is none is left to the JSON. */
export function conditionsOf(match: unknown): Condition[] {
  const { arguments: given } = objectOf(match);
  if (!Array.isArray(given)) return [];
  return given.map((one) => ({ path: '', op: 'eq', value: '', ...objectOf(one) }));
}

/** An object with members replaced; those that are undefined are taken out. */
export function withMembers<Of extends object>(object: Of, members: { [Name in keyof Of]?: Of[Name] | undefined }): Of {
  const entries = Object.entries({ ...object, ...members });
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined)) as Of;
}

/** ISO 8601 as `datetime-local` has it in the reader's zone; empty for none. */
export function localTime(iso: unknown): string {
  const ms = typeof iso === 'string' ? Date.parse(iso) : Number.NaN;
  if (Number.isNaN(ms)) return '';
  return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
