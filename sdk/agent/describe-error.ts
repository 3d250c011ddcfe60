import { ApiError, isTransient, UnreachableError } from '../client/errors.js';
import { AgentError } from './agent-error.js';
import type { ConnectionEnd } from '../connected/mesh-connection.js';

/** Where something went wrong, and which setting leads there. */
interface Place {
  /** The origin, without credentials and parameters. */
  at: string;
  check: string;
}

const CHECK_URL = 'check `url` or FLEET_BASE_URL';
const CREDENTIAL = '`clientId` and `clientSecret` (FLEET_CLIENT_ID, FLEET_CLIENT_SECRET), or `token` (FLEET_TOKEN)';

const NOBODY_ANSWERS = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ETIMEDOUT'];
const UNKNOWN_HOST = ['ENOTFOUND', 'EAI_AGAIN'];
const NOT_VALID_NOW = ['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'];
const UNTRUSTED = [
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_UNTRUSTED',
  'CERT_SIGNATURE_FAILURE',
];

/** What it means that a token or a registration failed. @param url the API's */
export function troubleOfError(error: unknown, url: string): AgentError {
  if (error instanceof AgentError) return error;
  const place = { at: originOf(url), check: CHECK_URL };
  if (error instanceof ApiError) return troubleOfAnswer(error, place.at);
  if (isUnreadable(error)) {
    return new AgentError('NOT_A_PLATFORM', `${place.at} answers, but not as the platform does: ${CHECK_URL}`);
  }
  const message = error instanceof Error ? error.message : String(error);
  return networkTrouble(error, place) ?? new AgentError('UNREACHABLE', message, { cause: error });
}

/** What it means that a connection to the mesh ended so. @param url the mesh's */
export function troubleOfEnd(end: ConnectionEnd, url: string): AgentError {
  const at = originOf(url);
  const { code, closeCode, httpStatus, error, message } = end;
  if (httpStatus !== undefined) {
    return new AgentError(code || `HTTP_${httpStatus}`, `the mesh at ${at} refused the connection: ${message}`);
  }
  if (end.timedOut) return new AgentError('MESH_SILENT', `the mesh at ${at} is silent: ${message}`);
  const check = 'it is the address of the mesh that the platform named: can it be reached from here?';
  const trouble = error ? networkTrouble(error, { at, check }) : null;
  if (trouble) return trouble;
  if (code) return new AgentError(code, `the mesh ended the connection with ${code}: ${message}`);
  const detail = [closeCode, message].filter(Boolean).join(', ');
  return new AgentError('CONNECTION_LOST', `the connection to the mesh at ${at} was lost (${detail})`);
}

/** The request was taken and not answered so far. @param url the API's */
export function noAnswer(url: string): AgentError {
  return new AgentError('NO_ANSWER', `${originOf(url)} has taken a request and does not answer it: ${CHECK_URL}`);
}

/** Nobody is there at all: the address may be an old one. */
export function isNobodyThere(error: unknown): boolean {
  return [...NOBODY_ANSWERS, ...UNKNOWN_HOST].includes(systemCodeOf(error));
}

/** The platform does not know the agent any more: it was silent for too long, or the platform has forgotten it. */
export function isUnknownHere(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404 && error.code === 'NOT_FOUND';
}

function troubleOfAnswer(error: ApiError, at: string): AgentError {
  const { status, code, message } = error;
  if (status === 401)
    return new AgentError(code, `the platform refused the credential: ${message} Check ${CREDENTIAL}.`);
  if (status === 403) {
    const remedy = 'Check the `type` of the agent, and which types its credential may ask for and may join.';
    return new AgentError(code, `the platform refused the agent: ${message} ${remedy}`);
  }
  if (status === 426 || (status === 404 && code === 'NOT_FOUND')) {
    const remedy = 'that is the address of the mesh. Give the API’s, for example http://127.0.0.1:8080';
    return new AgentError('NOT_THE_API', `${at} is not the platform’s API (${message}): ${remedy}; ${CHECK_URL}`);
  }
  if (status >= 300 && status <= 399) {
    const remedy = 'redirects are not followed; give the address that it leads to';
    return new AgentError(code, `${at} answers with a redirect (${status}): ${remedy}; ${CHECK_URL}`);
  }
  if (code !== `HTTP_${status}`)
    return new AgentError(code, `the platform at ${at} answered ${status} ${code}: ${message}`);
  // Every error of a platform has a code of its own: this is of something else, at the address or before it.
  if (status < 500 && !isTransient(error)) {
    return new AgentError('NOT_A_PLATFORM', `${at} is no platform (${message}): ${CHECK_URL}`);
  }
  return new AgentError(code, `${at} answers ${status}, and not as the platform does: is it running? ${CHECK_URL}`);
}

function networkTrouble(error: unknown, { at, check }: Place): AgentError | null {
  const code = systemCodeOf(error);
  const trouble = (kind: string, text: string) => new AgentError(kind, text, { cause: error });
  if (NOBODY_ANSWERS.includes(code)) {
    return trouble('UNREACHABLE', `nothing answers at ${at} (${code}): is the platform running? ${check}`);
  }
  if (UNKNOWN_HOST.includes(code)) return trouble('UNKNOWN_HOST', `the host of ${at} is not known (${code}): ${check}`);
  if (UNTRUSTED.includes(code)) {
    const remedy = 'set `ca` or FLEET_CA_FILE to the certificate authority that issued it';
    return trouble('UNTRUSTED_CERTIFICATE', `the certificate of ${at} is not trusted (${code}): ${remedy}`);
  }
  if (NOT_VALID_NOW.includes(code)) {
    return trouble(
      'INVALID_CERTIFICATE',
      `the certificate of ${at} is not valid now (${code}): renew it, or set the clock`,
    );
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const remedy = 'use a name that it is for, or give the server another one';
    return trouble('INVALID_CERTIFICATE', `the certificate of ${at} is for other names (${code}): ${remedy}`);
  }
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) {
    return trouble('NO_TLS', `${at} does not speak TLS (${code}): is it http:// there? ${check}`);
  }
  return null;
}

/** What is no JSON, or not of the shape that the platform answers in. */
function isUnreadable(error: unknown): boolean {
  if (error instanceof UnreachableError) return error.cause instanceof SyntaxError;
  return error instanceof Error && error.name === 'ZodError';
}

/** The code of Node's innermost error; empty where there is none. */
function systemCodeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if (error.cause instanceof Error) return systemCodeOf(error.cause);
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : '';
}

function originOf(url: string): string {
  return new URL(url).origin;
}
