import type { FastifyInstance, FastifyRequest } from 'fastify';
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

/** The body of a JSON-RPC request that is not JSON: the route answers -32700 instead of a status. */
export const NOT_JSON = Symbol('not JSON');
/** The body of a JSON-RPC request of another content type, which the versions of A2A answer differently. */
export const OTHER_TYPE = Symbol('another content type');

const decoder = new TextDecoder('utf-8', { fatal: true });

/** @throws PlatformError `BAD_REQUEST`, `PAYLOAD_TOO_LARGE`; SyntaxError or TypeError for bytes that are not JSON in UTF-8 */
function parse(bytes: Buffer): unknown {
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

function parseBody(request: FastifyRequest, bytes: Buffer): unknown {
  const rpc = request.routeOptions.config.rpc === true;
  if (bytes.length === 0) return rpc ? NOT_JSON : undefined;
  try {
    return parse(bytes);
  } catch (error) {
    if (error instanceof PlatformError) throw error;
    if (rpc) return NOT_JSON;
    throw new PlatformError('BAD_REQUEST', 'The body is not valid JSON in UTF-8.');
  }
}

/** @throws PlatformError `BAD_REQUEST` */
function otherType(request: FastifyRequest): unknown {
  if (request.is404) return undefined; // 404 comes first
  if (request.routeOptions.config.rpc === true) return OTHER_TYPE;
  throw new PlatformError('BAD_REQUEST', 'The Content-Type must be application/json.');
}

/** Reads bodies of `application/json` in UTF-8, within the limits on size and depth. */
export function useJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  const read = (types: string, parser: (request: FastifyRequest, bytes: Buffer) => unknown) =>
    app.addContentTypeParser<Buffer>(
      types,
      { parseAs: 'buffer', bodyLimit: LIMITS.bodyBytes },
      (request: FastifyRequest, bytes: Buffer, done: (error: Error | null, body?: unknown) => void) => {
        try {
          done(null, parser(request, bytes));
        } catch (error) {
          done(error as Error);
        }
      },
    );
  read('application/json', parseBody);
  read('*', otherType);
}
