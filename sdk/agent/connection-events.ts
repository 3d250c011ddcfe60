/** What happens to the connection of an agent. */
export interface ConnectionEvents {
  connected: { instanceId: string; meshId: string; resumed: boolean };
  /** Lost, or not made. `code` is the platform's own, empty where it said nothing. */
  disconnected: { code: string; message: string; retryInMs: number };
}
