import type { Policy } from '../../contracts/api/policies/policies.js';
import type { OfferedTool } from '../../contracts/api/tools.js';
import { matchesGlob } from '../../contracts/globs.js';
import { objectOf } from '../policies/form.js';
import { inOrder, isActive } from '../policies/words.js';

/** The tools that an address asks for, by name, description or agent type: those of agents first. */
export function shownTools(tools: readonly OfferedTool[], q = ''): OfferedTool[] {
  const wanted = q.toLowerCase();
  const found = tools.filter(({ name, description = '', offered_by }) =>
    `${name} ${description} ${offered_by.join(' ')}`.toLowerCase().includes(wanted),
  );
  return found.toSorted((one, other) => one.source.localeCompare(other.source) || one.name.localeCompare(other.name));
}

/** The policies in force that may decide about calls of a tool, in the order in which they are looked at. What else they look at is not compared. */
export function policiesOf(policies: readonly Policy[], tool: string, nowMs: number): Policy[] {
  const names = (globs: readonly string[]) => globs.some((glob) => matchesGlob(glob, tool));
  return inOrder(policies).filter(({ match, ...policy }) => {
    const isLeftOut = match.not?.tools && Object.keys(match.not).length === 1 && names(match.not.tools);
    return policy.scope === 'tool' && isActive(policy, nowMs) && (!match.tools || names(match.tools)) && !isLeftOut;
  });
}

/** A member of what a tool takes. */
export interface Parameter {
  name: string;
  type: string;
  isRequired: boolean;
  description: string;
}

/** The members that a schema describes; none where it is no object with properties. */
export function parametersOf(schema: Record<string, unknown> | undefined): Parameter[] {
  const required = Array.isArray(schema?.required) ? schema.required : [];
  return Object.entries(objectOf(schema?.properties)).map(([name, value]) => {
    const { type, description, enum: options } = objectOf(value);
    const types = Array.isArray(options)
      ? options.map((one) => JSON.stringify(one))
      : [type ?? 'any'].flat().map(String);
    return {
      name,
      type: types.join(' | '),
      isRequired: required.includes(name),
      description: typeof description === 'string' ? description : '',
    };
  });
}
