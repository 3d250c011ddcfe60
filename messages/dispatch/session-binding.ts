/** The session of a message, as far as routing needs it. */
export interface SessionBinding {
  explicit: boolean;
  instance_id: string | null;
  agent_type: string | null;
}
