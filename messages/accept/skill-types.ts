import { PlatformError } from '../../runtime/errors.js';

/** Policies decide about each type that has a skill. If more types have it, a message has to name one. */
const TYPES_MAX = 100;

/** The types of a tenant's ($1) registered agents that have a skill ($2), at most one more than `TYPES_MAX`. */
export const TYPES_WITH_SKILL = `
  SELECT DISTINCT k.agent_type FROM agent_skills k WHERE k.tenant_id = $1 AND k.skill_id = $2 AND k.agent_type <> ''
   LIMIT ${TYPES_MAX + 1}`;

/** @throws PlatformError INVALID_PARAMS where a message may go to too many types */
export function checkTypes(types: readonly unknown[]): void {
  if (types.length > TYPES_MAX)
    throw new PlatformError('INVALID_PARAMS', `metadata.agent_type: more than ${TYPES_MAX} types have the skill.`);
}
