import { z } from 'zod';
import { LIMITS } from './limits.js';

/** The scopes, the lowest first; a higher one includes the lower ones. */
const SCOPES = ['read', 'admin', 'full'] as const;
export const Scope = z.enum(SCOPES);
export type Scope = z.infer<typeof Scope>;

/** Whether the scopes `held` include the scope `needed`. */
export function scopeIncludes(held: readonly string[], needed: Scope): boolean {
  const rank = SCOPES.indexOf(needed);
  return held.some((scope) => SCOPES.indexOf(scope as Scope) >= rank);
}

const NAME = '[A-Za-z0-9][A-Za-z0-9._:-]{0,127}';
const name = () => z.string().regex(new RegExp(`^${NAME}$`), `must match ${NAME}`);
export const InstanceId = name();
export const AgentType = name();
/** The `agent_type` of a token that does not act as an agent. */
export const NO_AGENT = 'credential';
/** An agent type that agents can have; an agent of type `credential` would own every token that does not act as an agent. */
export const AgentTypeOfAgents = AgentType.refine((type) => type !== NO_AGENT, { message: `must not be ${NO_AGENT}` });
/** An identifier in a request: any short string, since an unknown id gets 404 and not 400. */
export const AnyId = z.string().min(1).max(200);
/** Ids of operators of the platform begin so. */
export const OPERATOR_PREFIX = 'op_';
/** Ids of people who sign in to the console begin so; those of a product's end users do not. */
export const PERSON_PREFIX = 'per_';
/** An end user of the tenant's product, as the tenant names it. */
export const UserId = z.string().min(1).max(256);
/** ISO 8601 UTC with milliseconds. */
export const Timestamp = z.iso.datetime();
/** A time in a request: ISO 8601 with any offset, in the years 1 to 9999. Parsed to UTC with milliseconds. */
export const Instant = z.iso.datetime({ offset: true }).transform((text, context) => {
  const at = new Date(text);
  const year = at.getUTCFullYear();
  if (year >= 1 && year <= 9999) return at.toISOString();
  context.addIssue('must be in the years 1 to 9999');
  return z.NEVER;
});

/** Limits the values of a schema to `maxBytes` bytes of JSON. */
export function within<Schema extends z.ZodType>(maxBytes: number, schema: Schema) {
  return schema.refine((value) => Buffer.byteLength(JSON.stringify(value)) <= maxBytes, {
    message: `must be at most ${maxBytes} bytes`,
  });
}

/** An object with any members. */
export const JsonObject = z.record(z.string(), z.unknown());
export const Metadata = within(LIMITS.metadataBytes, JsonObject);
/** Why a caller does something; events and answers show it. */
export const Reason = z.string().max(1024).optional();

/** The body of a successful response. */
export function ok<Shape extends z.ZodRawShape>(members: Shape) {
  return z.object({ ok: z.literal(true), ...members });
}

export const pageFields = {
  page: z.int().min(1).max(1_000_000).default(1),
  page_size: z.int().min(1).max(LIMITS.pageSizeMax).default(LIMITS.pageSizeDefault),
};

/** A list that can be read by its page, or by cursor from its first page on. */
export const cursorFields = {
  ...pageFields,
  /** Where the page before ended, in place of `page`: its `next_cursor`. */
  cursor: z.string().min(1).max(1_024).optional(),
};
/** For `refine` of a request with `cursorFields`. */
export const isOneWay = ({ page, cursor }: { page: number; cursor?: string | undefined }): boolean =>
  page === 1 || cursor === undefined;
export const ONE_WAY = 'cursor goes with no page: go on by next_cursor';

/** Filters by the end user that something is for, and by the credential that sent it. */
export const ofSender = { user_id: UserId.optional(), credential_id: AnyId.optional() };

const counted = {
  /** The number of all items. */
  count: z.int(),
  /** There are more than `LIMITS.countExactMax` items, and `count` is an estimate. */
  count_estimated: z.literal(true).optional(),
};

/** The body of a list response. */
export function okPage<Shape extends z.ZodRawShape>(items: Shape) {
  return ok({ ...counted, page: z.int(), page_size: z.int(), total_pages: z.int(), ...items });
}

/** `next_cursor` of a list that can be read by page or by cursor: there is more; it is good for the same filters and the same caller. */
export function okCursorPage<Shape extends z.ZodRawShape>(items: Shape) {
  return okPage({ ...items, next_cursor: z.string().optional() });
}

/** The body of a list that is read by cursor. `next_cursor`: there is more; it is good for the same filters and the same caller. */
export function okList<Shape extends z.ZodRawShape>(items: Shape) {
  const { count, count_estimated } = counted;
  return ok({ ...items, next_cursor: z.string().optional(), count: count.optional(), count_estimated });
}

/** Who did something. `id`: of a credential, an agent type, the rule whose delivery carried a token, a Slack user, an operator (`cli:` and the login
 * for the command line), a part of the platform, … */
export const Principal = z.object({
  type: z.enum([
    'credential',
    'agent',
    'person',
    'callback',
    'page',
    'slack',
    'system',
    'schedule',
    'operator',
    'temporal',
  ]),
  id: z.string(),
  name: z.string().optional(),
});
export type Principal = z.infer<typeof Principal>;

export const ErrorBody = z.object({
  error: z.string(),
  code: z.string(),
  request_id: z.string(),
  timestamp: Timestamp,
});

/** In a credential's `agent_types`: any type except `credential`. */
export const ANY_AGENT_TYPE = '*';
