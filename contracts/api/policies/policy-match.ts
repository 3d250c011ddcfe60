import { z } from 'zod';
import { LIMITS } from '../../limits.js';
import { within } from '../../primitives.js';

const globs = z.array(z.string().min(1).max(512)).min(1).max(100);
const scalar = z.union([z.string().max(4096), z.number(), z.boolean(), z.null()]);

/** Members of the arguments by their names, and by index in arrays; `*` stands for any: `to.0`, `items.*.price`. */
const ArgumentPath = z
  .string()
  .max(256)
  .regex(/^[^.\s]+(\.[^.\s]+)*$/, 'must be names of members with dots between them');

const argument = <Op extends string, Value extends z.ZodType>(op: Op | [Op, ...Op[]], value: Value) =>
  z.strictObject({ path: ArgumentPath, op: z.enum([op].flat() as [Op, ...Op[]]), value });

const ArgumentCondition = z.discriminatedUnion('op', [
  argument(['eq', 'ne', 'contains'], scalar),
  argument('in', z.array(scalar).min(1).max(100)),
  argument(['gt', 'gte', 'lt', 'lte'], z.union([z.number(), z.string().max(4096)])),
  argument('matches', z.string().min(1).max(256)),
]);
export type ArgumentCondition = z.infer<typeof ArgumentCondition>;

const conditions = {
  /** Globs, in which `*` stands for any characters and `?` for one. One of each list must match. */
  tools: globs.optional(),
  agent_types: globs.optional(),
  instance_ids: globs.optional(),
  skills: globs.optional(),
  actions: globs.optional(),
  /** Globs of the paths that the arguments name: `*` stays within a segment, the segment `**` stands for any number of them. */
  paths: globs.optional(),
  /** Globs of the hosts that the arguments name. */
  hosts: globs.optional(),
  /** Conditions on members of the arguments. All must hold. */
  arguments: z.array(ArgumentCondition).min(1).max(20).optional(),
};
const Conditions = z.strictObject(conditions);
export type Conditions = z.infer<typeof Conditions>;

/** When a policy applies: all given members must hold, and not all of `not`. */
export const Match = within(
  LIMITS.policyMatchBytes,
  z.strictObject({
    ...conditions,
    not: Conditions.refine((not) => Object.values(not).some((one) => one !== undefined), {
      message: 'must have a condition',
    }).optional(),
  }),
);
export type Match = z.infer<typeof Match>;
