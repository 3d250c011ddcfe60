/** The agent that has room. */
export interface AgentWithRoom {
  agent_type: string;
  instance_id: string;
}

/** The agent on which a row holds a slot; none where it holds none. */
export function slotOf(row: {
  holds_slot: boolean;
  agent_type: string | null;
  instance_id: string | null;
}): AgentWithRoom[] {
  const { holds_slot, agent_type, instance_id } = row;
  return holds_slot && agent_type !== null && instance_id !== null ? [{ agent_type, instance_id }] : [];
}
