import { inspect } from 'node:util';
import type { z } from 'zod';
import { jsonProblem, mayBeUnfit, nestsDeeper } from '../../contracts/json-guard.js';
import { LIMITS } from '../../contracts/limits.js';

/** A handler gave something that cannot be sent. The message names the field and the remedy. */
export class UnsendableError extends Error {
  readonly code: 'BAD_REQUEST' | 'PAYLOAD_TOO_LARGE';

  constructor(message: string, code: UnsendableError['code'] = 'BAD_REQUEST') {
    super(message.slice(0, TEXT_MAX));
    this.name = 'UnsendableError';
    this.code = code;
  }
}

/** A member of a frame that a handler gives. */
export interface Field {
  /** As errors name it. */
  name: string;
  schema: z.ZodType;
  /** How deep it is in its frame: the frame is 1, its payload 2. */
  depth: number;
  /** Of JSON; a frame's size by default. */
  maxBytes?: number;
  /** What to give in place of a value that does not fit. */
  remedy: string;
}

const TEXT_MAX = 4_096;
const SHOWN_CHARS = 100;
const PATH_CHARS = 120;
/** The mesh reads no larger frame; the envelope and the ids around an answer need less than a KiB. */
export const ANSWER_BYTES_MAX: number = LIMITS.frameBytes - 1_024;

/**
 * The value as the mesh will read it: JSON that fits the schema, within the platform's rules for depth, size, characters and keys.
 * It is a copy: what the handler does to its object later does not change what is sent.
 * @throws UnsendableError
 */
export function sendable<T>(value: T, field: Field): T {
  const { name, schema, depth, maxBytes = ANSWER_BYTES_MAX, remedy } = field;
  const text = jsonOf(value, field);
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) {
    const message = `${name}: ${bytes} bytes of JSON are more than ${maxBytes}; shorten it, or give the URI of a file`;
    throw new UnsendableError(message, 'PAYLOAD_TOO_LARGE');
  }
  const copy: unknown = JSON.parse(text);
  const isSuspect = mayBeUnfit(text) || nestsDeeper(text, LIMITS.jsonDepth - depth + 1);
  const problem = isSuspect ? jsonProblem(copy, depth) : undefined;
  if (problem) {
    throw new UnsendableError(`${pathText([name, ...pathOfProblem(copy, depth)])} ${problem}; ${remedyOf(problem)}`);
  }
  const [issue] = schema.safeParse(copy).error?.issues ?? [];
  if (issue) throw new UnsendableError(`${pathText([name, ...issue.path])}: ${issue.message}; ${remedy}`);
  return copy as T;
}

/** A value of whatever kind, for an error. */
export function shown(value: unknown): string {
  return inspect(value, { depth: 0, breakLength: Number.POSITIVE_INFINITY, customInspect: false }).slice(
    0,
    SHOWN_CHARS,
  );
}

/** What was thrown, in words that any frame can carry. */
export function errorText(error: unknown): string {
  const text: unknown = error instanceof Error ? error.message : error;
  return (typeof text === 'string' ? text : shown(text)).replaceAll('\0', '\uFFFD').slice(0, TEXT_MAX);
}

/** Whether it can be the code of a failure. */
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
  // JSON has no word for `undefined`, functions and NaN.
  const isLost = text === undefined || (text === 'null' && value !== null);
  if (isLost) throw new UnsendableError(`${name} is ${shown(value)}; ${remedy}`);
  return text as string;
}

/** The keys that lead to what `jsonProblem` found. */
function pathOfProblem(value: unknown, depth: number): string[] {
  if (typeof value !== 'object' || value === null) return [];
  for (const [key, member] of Object.entries(value)) {
    if (jsonProblem(member, depth + 1) !== undefined) return [key, ...pathOfProblem(member, depth + 1)];
  }
  return [];
}

function pathText(path: PropertyKey[]): string {
  const text = path.map(String).join('.').replaceAll('\0', '\uFFFD');
  return text.length > PATH_CHARS ? `${text.slice(0, PATH_CHARS)}…` : text;
}

function remedyOf(problem: string): string {
  if (problem.includes('NUL')) return "remove it: text.replaceAll('\\0', '')";
  return problem.includes('deeper')
    ? 'the levels of the frame around it count too: make it flatter, or give it as text'
    : 'give it another name';
}
