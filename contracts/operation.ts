import type { z } from 'zod';
import type { Scope } from './primitives.js';

/**
 * What a token that acts as an agent may do with an operation:
 * `open`: the same as any other token of the scope; `own`: only with what is its own, the rest is not there for it; `forbidden`: nothing.
 */
export type AgentAccess = 'open' | 'own' | 'forbidden';

/** One operation of the HTTP face: its route, its check and its line in `/openapi.json` all come from here. */
export interface Operation<Request extends z.ZodType = z.ZodType, Response extends z.ZodType = z.ZodType> {
  method: 'GET' | 'POST';
  /** Fastify's spelling: `:id` is a parameter. */
  path: string;
  summary: string;
  tag: string;
  /**
   * The lowest scope that may call it. `public`: no token is looked at; `optional`: a token is checked where one is given, and
   * the operation decides.
   */
  access: Scope | 'public' | 'optional';
  /** What a token that acts as an agent may do with it. */
  agents: AgentAccess;
  /** What a token needs that does not stand for the agent's own type; `access` is enough for one that does. */
  othersNeed?: Scope;
  /** The body; an absent one counts as `{}` where no field is required. Absent for GET. */
  request?: Request;
  /** What may stand behind the `?` of a GET. */
  query?: z.ZodObject;
  response: Response;
  /** Statuses beyond 200. */
  statuses: readonly number[];
  /** An addition to the specification: may change without notice (specification section 9). */
  experimental?: boolean;
  /** Takes `A2A-Version` as a header or in the query. */
  a2aVersions?: boolean;
}

const USUAL = [400, 401, 403, 404, 408, 413, 429, 500, 502, 503] as const;
const OPEN = [500, 503] as const;

/** What an operation says of itself beside its line. */
type Extra = Partial<Pick<Operation, 'statuses' | 'experimental' | 'othersNeed' | 'a2aVersions'>>;

/** A POST; the schemas keep their types. */
export function operation<Request extends z.ZodType, Response extends z.ZodType>(
  path: string,
  tag: string,
  access: Operation['access'],
  agents: AgentAccess,
  summary: string,
  request: Request,
  response: Response,
  extra: Extra = {},
) {
  const statuses = [...USUAL, ...(extra.statuses ?? [])].sort((one, other) => one - other);
  return {
    method: 'POST',
    path,
    tag,
    access,
    agents,
    summary,
    request,
    response,
    ...extra,
    statuses,
  } satisfies Operation;
}

/** A GET. */
export function reading<Response extends z.ZodType>(
  path: string,
  tag: string,
  access: Operation['access'],
  agents: AgentAccess,
  summary: string,
  response: Response,
  extra: Extra = {},
) {
  return {
    method: 'GET',
    path,
    tag,
    access,
    agents,
    summary,
    response,
    statuses: OPEN,
    ...extra,
  } satisfies Operation;
}
