import type { z } from 'zod';
import type { Scope } from '../primitives.js';

/** One operation of the HTTP API. Its route, its access checks and its entry in `/openapi.json` derive from it. */
export interface Operation<Request extends z.ZodType = z.ZodType, Response extends z.ZodType = z.ZodType> {
  method: 'GET' | 'POST';
  /** In Fastify's syntax: `:id` is a parameter. */
  path: string;
  summary: string;
  /** The lowest scope that may call it. `public`: tokens are not checked; `optional`: without a token, the operation decides. `operator`: only the own token of an operator of the platform. */
  access: Scope | 'public' | 'optional' | 'operator';
  /** What a token that acts as an agent reaches. `open`: the same as others; `own`: what belongs to its agent type; `forbidden`: nothing. */
  agents: 'open' | 'own' | 'forbidden';
  /** The scope that a token needs unless it acts as the agent's own type, for which `access` is enough. */
  othersNeed?: Scope;
  /** The body; an absent one counts as `{}`. Undefined for GET. */
  request?: Request;
  /** The query parameters of a GET. */
  query?: z.ZodObject;
  response: Response;
  /** The statuses beside 200. */
  statuses: readonly number[];
  /** An extension of the specification, which may change without notice. */
  experimental?: boolean;
  /** The body is a form (`application/x-www-form-urlencoded`) instead of JSON; its route parses it. */
  form?: boolean;
  /** Of the body; that of all operations (`LIMITS.bodyBytes`) by default. */
  bodyBytes?: number;
  /** Answers with server-sent events, each of which carries a `response`. `both`: where the caller asks for that. */
  stream?: true | 'both';
  /** Answers with JSON Lines: `true`, each is a `response`; a schema, where the caller asks for that, each is one of these. */
  lines?: true | z.ZodType;
  /**
   * The operation is deprecated and works until then: ISO 8601 UTC, 30 days ahead at least when it is set. Its
   * answers carry `Deprecation` and `Sunset`; afterwards it answers 410 `ENDPOINT_SUNSET`.
   */
  sunset?: string;
  /** Accepts `A2A-Version` as a header or a query parameter. */
  a2aVersions?: boolean;
}

const POST_STATUSES = [400, 401, 403, 404, 408, 413, 429, 500, 502, 503];
const GET_STATUSES = [500, 503];
export const CONFLICT = { statuses: [409] };
export const EXTENSION = { experimental: true };

type Access = Pick<Operation, 'access' | 'agents'>;
export const PUBLIC: Access = { access: 'public', agents: 'open' };
/** For callers of the tenant with the scope `full`, `admin` or `read`; not for tokens that act as an agent. */
export const FULL: Access = { access: 'full', agents: 'forbidden' };
export const ADMIN: Access = { access: 'admin', agents: 'forbidden' };
export const TENANT: Access = { access: 'read', agents: 'forbidden' };
/** For operators of the platform, by their own token. */
export const OPERATOR: Access = { access: 'operator', agents: 'forbidden' };
/** For all tokens; one that acts as an agent reaches only what belongs to its type. */
export const OWN: Access = { access: 'read', agents: 'own' };

type Extra = Partial<
  Pick<
    Operation,
    'statuses' | 'experimental' | 'othersNeed' | 'a2aVersions' | 'form' | 'stream' | 'lines' | 'sunset' | 'bodyBytes'
  >
>;

/** A POST operation. `statuses` are added to those of every POST. */
export function post<const Path extends string, Request extends z.ZodType, Response extends z.ZodType>(
  path: Path,
  access: Access,
  summary: string,
  { statuses = [], ...operation }: { request: Request; response: Response } & Extra,
) {
  return { method: 'POST' as const, path, ...access, summary, ...operation, statuses: [...POST_STATUSES, ...statuses] };
}

/** A GET operation. `statuses` replace those of other GETs. */
export function get<const Rest extends Pick<Operation, 'response' | 'query'> & Extra>(
  path: string,
  access: Access,
  summary: string,
  operation: Rest,
) {
  return { method: 'GET' as const, path, ...access, summary, statuses: GET_STATUSES, ...operation };
}
