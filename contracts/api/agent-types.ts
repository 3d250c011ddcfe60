import { z } from 'zod';
import { AgentTypeOfAgents, ok } from '../primitives.js';
import { ADMIN, EXTENSION, post } from './operation.js';

export const SetDefaultTypeResponse = ok({ default_agent_type: z.string().nullable() });
export const AllowTypeResponse = ok({ agent_type: z.string(), was_new: z.boolean() });
export const DisallowTypeResponse = ok({
  agent_type: z.string(),
  removed_from_policy: z.boolean(),
  deregistered_count: z.int(),
});

/** Which agent types may join, and which is the default. */
export const AGENT_TYPE_OPERATIONS = {
  allowType: post(
    '/agents/allow_type',
    ADMIN,
    'Put an agent type on the list of those that may join; without a list every type may',
    { request: z.strictObject({ agent_type: AgentTypeOfAgents }), response: AllowTypeResponse, ...EXTENSION },
  ),
  disallowType: post('/agents/disallow_type', ADMIN, 'Keep an agent type out and deregister its instances', {
    request: z.strictObject({ agent_type: AgentTypeOfAgents }),
    response: DisallowTypeResponse,
    ...EXTENSION,
  }),
  setDefaultType: post('/agents/set_default', ADMIN, 'Set the agent type that gets messages which name no target', {
    request: z.strictObject({ agent_type: AgentTypeOfAgents.nullable() }),
    response: SetDefaultTypeResponse,
    ...EXTENSION,
  }),
};
