/** The name of an agent across tenants; neither part can hold a line feed. */
export function agentKeyOf(agent: { tenant_id: string; instance_id: string }): string {
  return `${agent.tenant_id}\n${agent.instance_id}`;
}
