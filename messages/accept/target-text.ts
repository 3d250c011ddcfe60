/** The target of a message; null for a name that it leaves open. */
export interface TargetNames {
  instance_id: string | null;
  agent_type: string | null;
  skill_id: string | null;
}

/** Names for a text. `more`: there are others. */
export interface Names {
  names: string[];
  more: boolean;
}

/** The registered targets, to be listed in a text. */
export interface Registered {
  types: Names;
  /** Whether an agent of the wanted type is registered. */
  type: boolean;
  /** The skills of the registered agents that match the wanted instance and type. */
  skills: Names;
  /** The wanted instance, registered or not; null when there never was one. */
  instance: { agent_type: string; registered: boolean } | null;
}

function listed({ names, more }: Names): string {
  return `${names.join(', ')}${more ? ', …' : ''}`;
}

function typesText({ names, more }: Names): string {
  return names.length === 0 ? 'No agent is registered.' : `Registered types: ${listed({ names, more })}.`;
}

function skillsText(skills: Names): string {
  return skills.names.length === 0 ? 'None is declared.' : `Skills there are: ${listed(skills)}.`;
}

/** A target in words: `an agent of the type writer with the skill translate`. */
function targetText({ instance_id, agent_type, skill_id }: TargetNames): string {
  const skill = skill_id === null ? '' : ` with the skill ${skill_id}`;
  if (instance_id !== null) return `the agent ${instance_id}`;
  return agent_type === null ? `an agent${skill}` : `an agent of the type ${agent_type}${skill}`;
}

/** The error text for a target that is not registered, with the targets that are. */
export function unknownText(target: TargetNames, { types, type, skills, instance }: Registered): string {
  const { instance_id, agent_type, skill_id } = target;
  if (instance_id !== null && !instance?.registered) {
    const what = instance ? 'is deregistered' : 'is not registered';
    return `The agent ${instance_id} ${what}. ${typesText(types)}`;
  }
  if (instance && agent_type !== null && instance.agent_type !== agent_type) {
    return `The agent ${instance_id} is of the type ${instance.agent_type}, not ${agent_type}.`;
  }
  if (types.names.length === 0) return typesText(types);
  if (agent_type !== null && !type) {
    return `No agent of the type ${agent_type} is registered. ${typesText(types)}`;
  }
  if (skill_id === null) return typesText(types);
  const subject =
    instance_id === null
      ? `No registered agent${agent_type === null ? '' : ` of the type ${agent_type}`} has`
      : `The agent ${instance_id} does not have`;
  return `${subject} the skill ${skill_id}. ${skillsText(skills)}`;
}

/** The error text for a message without a target. */
export function requiredText(types: Names): string {
  if (types.names.length === 0) return 'The message names no target, and no agent is registered.';
  return `The message names no target, and the tenant has no default type. Set metadata.agent_type to one of: ${listed(types)}.`;
}

/** Why an agent takes no message now, and what an operator can do. `free`: the agent has room, but the message did not reach it. */
const REASONS: Record<string, { is: string; remedy: string }> = {
  full: { is: 'full', remedy: 'Start another one, or raise max_concurrent_sessions or max_concurrent_tasks.' },
  saturated: { is: 'with the most dispatches in flight', remedy: 'Start another one.' },
  busy: { is: 'busy', remedy: 'Start another one.' },
  draining: { is: 'draining', remedy: 'Start another one.' },
  offline: { is: 'offline', remedy: 'Connect it again.' },
  unhealthy: { is: 'unhealthy', remedy: 'Read /agents/get_connection for its last error.' },
  free: { is: 'not reached', remedy: 'Read /agents/get_connection for its last error.' },
};

/** The error text for a message that no agent took in time. @param counts the registered agents that match, by state (see `REASONS`) */
export function waitedText(target: TargetNames, waitedMs: number, counts: Record<string, number>): string {
  const found = Object.entries(REASONS).filter(([state]) => (counts[state] ?? 0) > 0);
  const waited = `Nobody took the message within ${Math.round(waitedMs / 100) / 10} s. It waited for ${targetText(target)}`;
  if (found.length === 0) return `${waited}: none is registered any more. Register one.`;
  const states = found.map(([state, { is }]) => `${counts[state]} ${is}`).join(', ');
  return `${waited}: ${states}. ${found[0]?.[1].remedy}`;
}
