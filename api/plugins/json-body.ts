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
import { LargeJson } from './large-json.js';

/** The body of a JSON-RPC request that is not JSON: the route answers -32700 instead of a status. */
export const NOT_JSON = Symbol('not JSON');
/** The body of a JSON-RPC request of another content type, which the versions of A2A answer differently. */
export const OTHER_TYPE = Symbol('another content type');

const decoder = new TextDecoder('utf-8', { fatal: true });

/** @throws PlatformError `BAD_REQUEST`, `PAYLOAD_TOO_LARGE` */
function parseChecked(bytes: Uint8Array): unknown {
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
    return { value: parseChecked(bytes) };
  } catch (error) {
    if (error instanceof PlatformError) throw error;
    return undefined; // broken UTF-8 or JSON: the caller says so
  }
}

/** @param parsed undefined for bytes that are no JSON @throws PlatformError `BAD_REQUEST` */
function bodyOf(request: FastifyRequest, parsed: { value: unknown } | undefined): unknown {
  if (parsed) return parsed.value;
  if (request.routeOptions.config.rpc === true) return NOT_JSON;
  throw new PlatformError('BAD_REQUEST', 'The body is not valid JSON in UTF-8.');
}

function parseBody(request: FastifyRequest, bytes: Buffer): unknown {
  if (bytes.length === 0) return request.routeOptions.config.rpc === true ? NOT_JSON : undefined;
  return bodyOf(request, parseJson(bytes));
}

/** @throws PlatformError `BAD_REQUEST` */
function otherType(request: FastifyRequest): unknown {
  if (request.is404) return undefined; // 404 comes first
  if (request.routeOptions.config.rpc === true) return OTHER_TYPE;
  throw new PlatformError('BAD_REQUEST', 'The Content-Type must be application/json.');
}

type Done = (error: Error | null, body?: unknown) => void;

/** Reads bodies of `application/json` in UTF-8, within the limits on size and depth. Large ones are parsed beside the event loop. */
export function useJsonBodies(app: FastifyInstance): void {
  const large = new LargeJson(app.log);
  app.addHook('onClose', () => large.close());
  app.removeAllContentTypeParsers();
  const read = (types: string, parser: (request: FastifyRequest, bytes: Buffer, done: Done) => void) =>
    app.addContentTypeParser<Buffer>(types, { parseAs: 'buffer', bodyLimit: LIMITS.bodyBytes }, parser);
  // Small bodies, which are nearly all, pay for no promise.
  const atOnce = (parse: () => unknown, done: Done): void => {
    try {
      done(null, parse());
    } catch (error) {
      done(error as Error);
    }
  };
  read('application/json', (request, bytes, done) => {
    if (bytes.length <= LIMITS.bodyBytes) return atOnce(() => parseBody(request, bytes), done);
    large.parse(bytes).then(
      (parsed) => atOnce(() => bodyOf(request, parsed), done),
      (error: Error) => done(error),
    );
  });
  read('*', (request, _, done) => atOnce(() => otherType(request), done));
}
