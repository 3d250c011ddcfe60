import type { DeploymentMode } from '../contracts/api/agents.js';
import { isObject } from '../contracts/json-guard.js';
import type { PolicyRequest } from '../policy/policy-request.js';

/** An agent as the registration leaves it: with the fetched card, or with what its `hello` changes. */
export interface RegisteredAgent {
  agent_type: string;
  /** Absent if the platform assigns it. */
  instance_id?: string;
  deployment_mode: DeploymentMode;
  public_url: string | null;
  skills: readonly unknown[];
  tools: readonly unknown[];
  agent_card: Readonly<Record<string, unknown>>;
  context: Readonly<Record<string, unknown>>;
}

/** The ids of an agent's skills, those on its card included: a message to any of them may go to it. */
function skillIds({ skills, agent_card }: RegisteredAgent): string[] {
  const onCard = Array.isArray(agent_card.skills) ? agent_card.skills : [];
  const ids = [...skills, ...onCard].map((skill: unknown) => (isObject(skill) ? skill.id : undefined));
  return [...new Set(ids)].filter((id) => typeof id === 'string');
}

/** What policies of scope `admission` see of a registration. @param token of who registers the agent, or connects as it */
export function registrationRequest(token: PolicyRequest['token'], agent: RegisteredAgent): PolicyRequest {
  const { agent_type, instance_id, public_url, deployment_mode, skills, tools, agent_card, context } = agent;
  return {
    scope: 'admission',
    action: 'register',
    arguments: { deployment_mode, ...(public_url !== null && { public_url }), skills, tools, agent_card, context },
    agent: { agent_type, ...(instance_id !== undefined && { instance_id }), skill_ids: skillIds(agent) },
    ...(token && { token }),
  };
}
