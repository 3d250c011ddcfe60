import { inspect } from 'node:util';
import type { z } from 'zod';
import { jsonProblem, mayBeUnfit, nestsDeeper } from '../../contracts/json-guard.js';
import { LIMITS } from '../../contracts/limits.js';

/** A handler returned or streamed a value that cannot be sent. The message names the field and the remedy. */
export class UnsendableError extends Error {
  readonly code: 'BAD_REQUEST' | 'PAYLOAD_TOO_LARGE';

  constructor(message: string, code: UnsendableError['code'] = 'BAD_REQUEST') {
    super(message.slice(0, TEXT_MAX));
    this.name = 'UnsendableError';
    this.code = code;
  }
}

/** A member of a frame whose value comes from a handler. */
export interface Field {
  /** Name in error messages. */
  name: string;
  schema: z.ZodType;
  /** Nesting level in the frame: the frame is 1, its payload 2. */
  depth: number;
  /** Limit on the JSON text; the size of a frame by default. */
  maxBytes?: number;
  /** What to return instead of an invalid value; the end of the error message. */
  remedy: string;
}

const TEXT_MAX = 4_096;
const SHOWN_CHARS = 100;
const PATH_CHARS = 120;
/** The mesh refuses larger frames; the envelope and the ids around an answer need less than 1 KiB. */
export const ANSWER_BYTES_MAX: number = LIMITS.frameBytes - 1_024;

/**
 * The value as the mesh will parse it: JSON that matches the schema, within the platform's limits on depth, size, characters and keys.
 * The result is a copy, so later changes to the handler's object do not change what is sent.
 * @throws UnsendableError when the value is invalid
 */
export function sendable<T>(value: T, field: Field): T {
  const { name, schema, depth, maxBytes = ANSWER_BYTES_MAX, remedy } = field;
  const text = jsonOf(value, field);
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) {
    const message = `${name}: ${bytes} bytes of JSON are more than ${maxBytes}; shorten it, or send the URI of a file`;
    throw new UnsendableError(message, 'PAYLOAD_TOO_LARGE');
  }
  const copy: unknown = JSON.parse(text);
  const needsCheck = mayBeUnfit(text) || nestsDeeper(text, LIMITS.jsonDepth - depth + 1);
  const problem = needsCheck ? jsonProblem(copy, depth) : undefined;
  if (problem) {
    throw new UnsendableError(`${pathText([name, ...pathOfProblem(copy, depth)])} ${problem}; ${remedyOf(problem)}`);
  }
  const { data: read, error } = schema.safeParse(copy);
  const [issue] = error?.issues ?? [];
  if (issue) throw new UnsendableError(`${pathText([name, ...issue.path])}: ${issue.message}; ${remedy}`);
  const unread = unreadMember(copy, read);
  if (unread) throw new UnsendableError(`${pathText([name, ...unread])} is no member that anybody reads; ${remedy}`);
  return copy as T;
}

/** A value of any type as text, for an error message. */
export function shown(value: unknown): string {
  return inspect(value, { depth: 0, breakLength: Number.POSITIVE_INFINITY, customInspect: false }).slice(
    0,
    SHOWN_CHARS,
  );
}

/** The message of a thrown value, as text that a frame can carry. */
export function errorText(error: unknown): string {
  const text: unknown = error instanceof Error ? error.message : error;
  return (typeof text === 'string' ? text : shown(text)).replaceAll('\0', '\uFFFD').slice(0, TEXT_MAX);
}

/** Whether the value can be an error code. */
export function isErrorCode(code: unknown): code is string {
  return typeof code === 'string' && code !== '' && code.length <= 64 && !code.includes('\0');
}

function jsonOf(value: unknown, { name, remedy }: Field): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new UnsendableError(`${name} cannot be written as JSON: ${errorText(error)}; ${remedy}`);
  }
  // JSON cannot represent `undefined`, functions and NaN.
  const isLost = text === undefined || (text === 'null' && value !== null);
  if (isLost) throw new UnsendableError(`${name} is ${shown(value)}; ${remedy}`);
  return text as string;
}

/** The path to the value that `jsonProblem` reports. */
function pathOfProblem(value: unknown, depth: number): string[] {
  if (typeof value !== 'object' || value === null) return [];
  for (const [key, member] of Object.entries(value)) {
    if (jsonProblem(member, depth + 1) !== undefined) return [key, ...pathOfProblem(member, depth + 1)];
  }
  return [];
}

/** The path to a member that the schema does not know: a typo would go unnoticed. */
function unreadMember(given: unknown, read: unknown): string[] | null {
  if (given === read || typeof given !== 'object' || typeof read !== 'object' || !given || !read) return null;
  for (const [key, member] of Object.entries(given)) {
    const path = Object.hasOwn(read, key) ? unreadMember(member, (read as Record<string, unknown>)[key]) : [];
    if (path) return [key, ...path];
  }
  return null;
}

function pathText(path: PropertyKey[]): string {
  const text = path.map(String).join('.').replaceAll('\0', '\uFFFD');
  return text.length > PATH_CHARS ? `${text.slice(0, PATH_CHARS)}…` : text;
}

function remedyOf(problem: string): string {
  if (problem.includes('NUL')) return "remove it: text.replaceAll('\\0', '')";
  return problem.includes('deeper')
    ? 'the levels of the frame around it count too: make it flatter, or send it as text'
    : 'rename it';
}
