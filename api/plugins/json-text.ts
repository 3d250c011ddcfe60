import {
  hasMoreValues,
  jsonProblem,
  makeWellFormed,
  mayBeIllFormed,
  mayBeUnfit,
  nestsDeeper,
} from '../../contracts/json-guard.js';
import { LIMITS } from '../../contracts/limits.js';
import { PlatformError } from '../../runtime/errors.js';

const decoder = new TextDecoder('utf-8', { fatal: true });

/** @throws PlatformError `BAD_REQUEST`, `PAYLOAD_TOO_LARGE` */
function parse(bytes: Uint8Array): unknown {
  const text = decoder.decode(bytes);
  if (nestsDeeper(text, LIMITS.jsonDepth)) {
    throw new PlatformError('BAD_REQUEST', `The body is nested deeper than ${LIMITS.jsonDepth}.`);
  }
  if (bytes.length > LIMITS.bodyBytes && hasMoreValues(text, LIMITS.largeBodyValues)) {
    throw new PlatformError('PAYLOAD_TOO_LARGE', `A body of this size may have ${LIMITS.largeBodyValues} values.`);
  }
  const body: unknown = JSON.parse(text);
  const problem = mayBeUnfit(text) ? jsonProblem(body) : undefined;
  if (problem) throw new PlatformError('BAD_REQUEST', `The body ${problem}.`);
  if (mayBeIllFormed(text)) makeWellFormed(body);
  return body;
}

/** The value of a JSON text. @returns undefined for bytes that are not JSON in UTF-8 @throws PlatformError `BAD_REQUEST`, `PAYLOAD_TOO_LARGE` */
export function parseJson(bytes: Uint8Array): { value: unknown } | undefined {
  try {
    return { value: parse(bytes) };
  } catch (error) {
    if (error instanceof PlatformError) throw error;
    return undefined; // broken UTF-8 or JSON: the caller says so
  }
}
