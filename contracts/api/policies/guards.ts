import { z } from 'zod';
import { LIMITS } from '../../limits.js';
import { AnyId, ok, Timestamp } from '../../primitives.js';
import { ADMIN, EXTENSION, post } from '../operation.js';

/** The guards of the platform. */
export const GuardName = z.enum(['path', 'egress', 'secrets', 'prompt_injection', 'limits']);
export type GuardName = z.infer<typeof GuardName>;

/** What happens to content in which a guard finds something; each is recorded: `guard.allowed`, `guard.approval_required`, `guard.denied`. */
export const GuardDecision = z.enum(['allow', 'require_approval', 'deny']);
export type GuardDecision = z.infer<typeof GuardDecision>;

/** Where content is inspected: what goes to an agent, what comes from one, the arguments and the result of a tool call. */
export const GuardStage = z.enum(['message', 'output', 'tool_arguments', 'tool_result']);
export type GuardStage = z.infer<typeof GuardStage>;

export const SecretKind = z.enum([
  'credentials',
  'payment_cards',
  'bank_accounts',
  'national_ids',
  'email_addresses',
  'phone_numbers',
]);
export type SecretKind = z.infer<typeof SecretKind>;

const ENTRIES_MAX = 200;
const stages = (...given: GuardStage[]) =>
  z.array(GuardStage).max(4).default(given).describe('Where the guard looks; none: nowhere');
/** A host name, or `*.` and a domain for the names below it, or `*`. Kept in lower case. */
const HostGlob = z
  .string()
  .max(253)
  .toLowerCase()
  .regex(
    /^(?:\*|(?:\*\.)?[\p{L}\p{N}_](?:[\p{L}\p{N}._:-]*[\p{L}\p{N}])?|[0-9a-f:.]+)$/u,
    'must be a host name or *.domain',
  );
const hosts = (text: string) => z.array(HostGlob).max(ENTRIES_MAX).default([]).describe(text);
/** An absolute directory, of Unix or of a drive. */
const Root = z
  .string()
  .max(1024)
  .regex(/^(?:\/|[A-Za-z]:[\\/])/, 'must be an absolute directory')
  .refine((root) => !/(?:^|[\\/])\.\.(?:[\\/]|$)/.test(root), 'must not hold ..');
const bound = (most: number, text: string) => z.int().min(1).max(most).default(most).describe(text);

export const GUARD_CONFIGS = {
  path: z.strictObject({
    allowed_roots: z
      .array(Root)
      .max(ENTRIES_MAX)
      .default([])
      .describe('Directories that absolute paths must be in; none: any'),
  }),
  egress: z.strictObject({
    allowed_hosts: hosts('Hosts that URLs may name; none: every public one'),
    denied_hosts: hosts('Hosts that URLs may never name'),
    stages: stages('tool_arguments'),
  }),
  secrets: z.strictObject({
    detect: z
      .array(SecretKind)
      .max(SecretKind.options.length)
      .default(['credentials', 'payment_cards', 'bank_accounts', 'national_ids'])
      .describe('What to look for'),
    stages: stages('message', 'output', 'tool_arguments', 'tool_result'),
  }),
  prompt_injection: z.strictObject({ stages: stages('message', 'tool_result') }),
  limits: z.strictObject({
    max_message_bytes: bound(LIMITS.messagePartsBytes, 'Parts and metadata of a message, as JSON'),
    max_output_bytes: bound(LIMITS.chunkBytesBufferedPerDispatch, 'What an agent gives back for a message'),
    max_argument_bytes: bound(LIMITS.toolArgumentsBytes, 'Arguments of a tool call'),
    max_result_bytes: bound(LIMITS.toolResultBytes, 'Result of a tool call'),
    max_depth: bound(LIMITS.jsonDepth, 'Objects and arrays inside each other'),
    max_hops: bound(LIMITS.toolCallDepthMax, 'Tool calls that wait for each other'),
    max_repeated_calls: z
      .int()
      .min(1)
      .max(1_000_000)
      .nullable()
      .default(null)
      .describe('Calls of one tool with the same arguments in one dispatch; null: any number'),
  }),
} as const satisfies Record<GuardName, z.ZodType>;
export type GuardConfigs = { [Name in GuardName]: z.infer<(typeof GUARD_CONFIGS)[Name]> };

/** What a guard is without a row of its own. */
export const GUARD_DEFAULTS: { [Name in GuardName]: { enabled: boolean; decision: GuardDecision } } = {
  path: { enabled: true, decision: 'deny' },
  egress: { enabled: true, decision: 'deny' },
  secrets: { enabled: false, decision: 'deny' },
  prompt_injection: { enabled: false, decision: 'require_approval' },
  limits: { enabled: true, decision: 'deny' },
};

const guardOf = <Name extends GuardName>(name: Name) =>
  z.object({
    guard: z.literal(name),
    enabled: z.boolean(),
    decision: GuardDecision,
    config: GUARD_CONFIGS[name],
    /** Null: as the platform has it. */
    updated_at: Timestamp.nullable(),
    /** The principal of the last change, as in the audit. */
    updated_by: z.string().nullable(),
  });
export const Guard = z.discriminatedUnion('guard', [
  guardOf('path'),
  guardOf('egress'),
  guardOf('secrets'),
  guardOf('prompt_injection'),
  guardOf('limits'),
]);
export type Guard = z.infer<typeof Guard>;

type Given<Shape> = {
  [Member in keyof Shape]: z.ZodOptional<Shape[Member] extends z.ZodDefault<infer Inner> ? Inner : never>;
};
/** The members of a config that a change gives; those that it leaves out get no default. */
function givenOf<Shape extends Record<string, z.ZodDefault<z.ZodType>>>(config: z.ZodObject<Shape>) {
  const members = Object.entries(config.shape).map(([name, member]) => [
    name,
    (member as z.ZodDefault<z.ZodType>).unwrap().optional(),
  ]);
  return z.strictObject(Object.fromEntries(members) as Given<Shape>);
}

const change = { tenant_id: AnyId.optional(), enabled: z.boolean().optional(), decision: GuardDecision.optional() };
/** Members that are given replace the stored ones. */
const changeOf = <Name extends GuardName, Config extends z.ZodType>(name: Name, config: Config) =>
  z.strictObject({ guard: z.literal(name), ...change, config: config.optional() });
export const UpdateGuardRequest = z.discriminatedUnion('guard', [
  changeOf('path', givenOf(GUARD_CONFIGS.path)),
  changeOf('egress', givenOf(GUARD_CONFIGS.egress)),
  changeOf('secrets', givenOf(GUARD_CONFIGS.secrets)),
  changeOf('prompt_injection', givenOf(GUARD_CONFIGS.prompt_injection)),
  changeOf('limits', givenOf(GUARD_CONFIGS.limits)),
]);
export type UpdateGuardRequest = z.infer<typeof UpdateGuardRequest>;

export const GUARD_OPERATIONS = {
  getGuards: post('/policies/get_guards', ADMIN, 'The guards and their settings', {
    request: z.strictObject({ tenant_id: AnyId.optional() }),
    response: ok({ guards: z.array(Guard) }),
    ...EXTENSION,
  }),
  updateGuard: post('/policies/update_guard', ADMIN, 'Change a guard', {
    request: UpdateGuardRequest,
    response: ok({ guard: Guard }),
    ...EXTENSION,
  }),
};
