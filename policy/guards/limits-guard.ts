import { GUARD_CONFIGS, type GuardConfigs, type GuardStage } from '../../contracts/api/policies/guards.js';
import type { Find, GuardedContent } from './guarded-content.js';

/** The bounds of a tenant's content. */
type ContentLimits = GuardConfigs['limits'];

const BYTES: Record<GuardStage, keyof ContentLimits> = {
  message: 'max_message_bytes',
  output: 'max_output_bytes',
  tool_arguments: 'max_argument_bytes',
  tool_result: 'max_result_bytes',
};

/** The bounds of the platform itself, which hold for everybody. */
const PLATFORM_BOUNDS: ContentLimits = GUARD_CONFIGS.limits.parse({});

/** Whether a bound is stricter at this stage than the platform's own. */
export function limitsStage(limits: ContentLimits, stage: GuardStage): boolean {
  const bytes = BYTES[stage];
  if (isStricter(limits, bytes) || isStricter(limits, 'max_depth')) return true;
  return stage === 'tool_arguments' && (isStricter(limits, 'max_hops') || limits.max_repeated_calls !== null);
}

function isStricter(limits: ContentLimits, bound: keyof ContentLimits): boolean {
  return (limits[bound] ?? Number.POSITIVE_INFINITY) < (PLATFORM_BOUNDS[bound] ?? Number.POSITIVE_INFINITY);
}

/** Finds content beyond the bounds. Measures only what a bound that is stricter than the platform's asks for. */
export function findExcess({ stage, facts }: GuardedContent, limits: ContentLimits): Find[] {
  const bytes = limits[BYTES[stage]] as number;
  const found: Find[] = [];
  const note = (rule: string, what: string): void => void found.push({ rule, path: '', reason: `${what}.` });
  if (isStricter(limits, BYTES[stage]) && facts.bytes > bytes)
    note('size', `The content is larger than ${bytes} bytes`);
  if (isStricter(limits, 'max_depth') && facts.depth > limits.max_depth)
    note('depth', `The content nests deeper than ${limits.max_depth}`);
  if ((facts.hops ?? 0) > limits.max_hops) note('hops', `More than ${limits.max_hops} calls wait for each other`);
  const most = limits.max_repeated_calls;
  if (most !== null && (facts.repeats ?? 0) > most)
    note('repeated_calls', `The same call was made more than ${most} times`);
  return found;
}
