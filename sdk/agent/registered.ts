import { AgentRegisterResponse } from '../../contracts/api/agents.js';

/** What an agent needs of the answer to its registration. The rest may have values that this release does not know. */
export const Registered = AgentRegisterResponse.pick({
  tenant_id: true,
  instance_id: true,
  connect_url: true,
  jwks_url: true,
});
