import type { FastifyInstance, FastifyRequest } from 'fastify';
import { LIMITS } from '../../contracts/limits.js';
import { PlatformError } from '../../runtime/errors.js';
import { jsonProblem, makeWellFormed } from '../../runtime/json-guard.js';

/** Stands in for the body of a JSON-RPC request that is not JSON: that is answered with -32700, not with a status. */
export const NOT_JSON = Symbol('not JSON');

/**
 * Whether brackets nest deeper than `most`, without parsing: a text of 100,000 brackets must not cost more than reading it. Only
 * strings hide brackets.
 */
function nestsDeeper(text: string, most: number): boolean {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (inString) {
      if (char === BACKSLASH) at++;
      else if (char === QUOTE) inString = false;
    } else if (char === QUOTE) inString = true;
    else if (char === OPEN_BRACKET || char === OPEN_BRACE) {
      if (++depth > most) return true;
    } else if (char === CLOSE_BRACKET || char === CLOSE_BRACE) depth--;
  }
  return false;
}
const [QUOTE, BACKSLASH, OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [...'"\\[]{}'].map((char) =>
  char.charCodeAt(0),
);

const decoder = new TextDecoder('utf-8', { fatal: true });

function parse(bytes: Buffer): unknown {
  const text = decoder.decode(bytes);
  if (nestsDeeper(text, LIMITS.jsonDepth)) {
    throw new PlatformError('BAD_REQUEST', `The body is nested deeper than ${LIMITS.jsonDepth}.`);
  }
  return JSON.parse(text);
}

function parseBody(request: FastifyRequest, bytes: Buffer): unknown {
  const rpc = request.routeOptions.config.rpc === true;
  if (bytes.length === 0) return rpc ? NOT_JSON : undefined;
  let body: unknown;
  try {
    body = parse(bytes);
  } catch (error) {
    if (error instanceof PlatformError) throw error;
    if (rpc) return NOT_JSON;
    throw new PlatformError('BAD_REQUEST', 'The body is not valid JSON in UTF-8.');
  }
  const problem = jsonProblem(body);
  if (problem) throw new PlatformError('BAD_REQUEST', `The body ${problem}.`);
  makeWellFormed(body);
  return body;
}

/** Reads bodies: `application/json` only, in UTF-8, within the limits on size and depth. */
export function useJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>(
    'application/json',
    { parseAs: 'buffer', bodyLimit: LIMITS.bodyBytes },
    async (request: FastifyRequest, bytes: Buffer) => parseBody(request, bytes),
  );
}
