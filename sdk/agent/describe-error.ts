import { ApiError, isTransient, UnreachableError } from '../client/api/errors.js';
import type { ConnectionEnd } from '../connected/mesh-connection.js';
import { AgentError } from './agent-error.js';

/** The address that a request went to, and what the user should check. */
interface Target {
  /** Scheme, host and port, without credentials and parameters. */
  origin: string;
  check: string;
}

const CHECK_URL = 'check `url` or FLEET_BASE_URL';
const CREDENTIAL = '`clientId` and `clientSecret` (FLEET_CLIENT_ID, FLEET_CLIENT_SECRET), or `token` (FLEET_TOKEN)';

const HOST_UNREACHABLE = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ETIMEDOUT'];
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

/** Explains a failed registration or token request. @param url address of the API */
export function describeError(error: unknown, url: string): AgentError {
  if (error instanceof AgentError) return error;
  const target = { origin: originOf(url), check: CHECK_URL };
  if (error instanceof ApiError) return describeApiError(error, target.origin);
  if (isUnreadable(error)) {
    return new AgentError('NOT_A_PLATFORM', `${target.origin} answers, but not as the platform does: ${CHECK_URL}`);
  }
  const message = error instanceof Error ? error.message : String(error);
  return describeNetworkError(error, target) ?? new AgentError('UNREACHABLE', message, { cause: error });
}

/** Explains the end of a connection to the mesh. @param url address of the mesh */
export function describeConnectionEnd(end: ConnectionEnd, url: string): AgentError {
  const origin = originOf(url);
  const { code, closeCode, httpStatus, error, message } = end;
  if (httpStatus !== undefined) {
    return new AgentError(code || `HTTP_${httpStatus}`, `the mesh at ${origin} refused the connection: ${message}`);
  }
  if (end.timedOut) return new AgentError('MESH_SILENT', `the mesh at ${origin} is silent: ${message}`);
  const check = 'it is the address of the mesh that the platform named: can it be reached from here?';
  const described = error ? describeNetworkError(error, { origin, check }) : null;
  if (described) return described;
  if (code) return new AgentError(code, `the mesh ended the connection with ${code}: ${message}`);
  const detail = [closeCode, message].filter(Boolean).join(', ');
  return new AgentError('CONNECTION_LOST', `the connection to the mesh at ${origin} was lost (${detail})`);
}

/** The server accepted a request and has not answered it yet. @param url address of the API */
export function noAnswer(url: string): AgentError {
  return new AgentError('NO_ANSWER', `${originOf(url)} has taken a request and does not answer it: ${CHECK_URL}`);
}

/** Whether no host answers at the address, which may be outdated. */
export function isHostUnreachable(error: unknown): boolean {
  return [...HOST_UNREACHABLE, ...UNKNOWN_HOST].includes(systemCodeOf(error));
}

/** Whether the platform does not know the agent any more, for example after a long silence. */
export function isUnknownAgent(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404 && error.code === 'NOT_FOUND';
}

function describeApiError(error: ApiError, origin: string): AgentError {
  const { status, code, message } = error;
  if (status === 401)
    return new AgentError(code, `the platform refused the credential: ${message} Check ${CREDENTIAL}.`);
  if (status === 403) {
    const remedy = 'Check the `type` of the agent, and which types its credential may ask for and may join.';
    return new AgentError(code, `the platform refused the agent: ${message} ${remedy}`);
  }
  if (status === 426 || (status === 404 && code === 'NOT_FOUND')) {
    const remedy = 'that is the address of the mesh. Give the API’s, for example http://127.0.0.1:8080';
    return new AgentError('NOT_THE_API', `${origin} is not the platform’s API (${message}): ${remedy}; ${CHECK_URL}`);
  }
  if (status >= 300 && status <= 399) {
    const remedy = 'redirects are not followed; give the address that it leads to';
    return new AgentError(code, `${origin} answers with a redirect (${status}): ${remedy}; ${CHECK_URL}`);
  }
  if (code !== `HTTP_${status}`)
    return new AgentError(code, `the platform at ${origin} answered ${status} ${code}: ${message}`);
  // Every error of the platform has a code. An answer without one is from another program, or from a proxy.
  if (status < 500 && !isTransient(error)) {
    return new AgentError('NOT_A_PLATFORM', `${origin} is no platform (${message}): ${CHECK_URL}`);
  }
  return new AgentError(code, `${origin} answers ${status}, and not as the platform does: is it running? ${CHECK_URL}`);
}

function describeNetworkError(error: unknown, { origin, check }: Target): AgentError | null {
  const code = systemCodeOf(error);
  const agentError = (kind: string, text: string) => new AgentError(kind, text, { cause: error });
  if (HOST_UNREACHABLE.includes(code)) {
    return agentError('UNREACHABLE', `nothing answers at ${origin} (${code}): is the platform running? ${check}`);
  }
  if (UNKNOWN_HOST.includes(code))
    return agentError('UNKNOWN_HOST', `the host of ${origin} is not known (${code}): ${check}`);
  if (UNTRUSTED.includes(code)) {
    const remedy = 'set `ca` or FLEET_CA_FILE to the certificate authority that issued it';
    return agentError('UNTRUSTED_CERTIFICATE', `the certificate of ${origin} is not trusted (${code}): ${remedy}`);
  }
  if (NOT_VALID_NOW.includes(code)) {
    return agentError(
      'INVALID_CERTIFICATE',
      `the certificate of ${origin} is not valid now (${code}): renew it, or set the clock`,
    );
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const remedy = 'use a name that it is for, or give the server another one';
    return agentError('INVALID_CERTIFICATE', `the certificate of ${origin} is for other names (${code}): ${remedy}`);
  }
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) {
    return agentError('NO_TLS', `${origin} does not speak TLS (${code}): is it http:// there? ${check}`);
  }
  return null;
}

/** Whether the answer is not JSON, or does not match the platform's schema. */
function isUnreadable(error: unknown): boolean {
  if (error instanceof UnreachableError) return error.cause instanceof SyntaxError;
  return error instanceof Error && error.name === 'ZodError';
}

/** The code of the innermost Node.js error; empty without one. */
function systemCodeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if (error.cause instanceof Error) return systemCodeOf(error.cause);
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : '';
}

function originOf(url: string): string {
  return new URL(url).origin;
}
