/** Which failures docs/durability.md allows, given what was killed and when. */

/** Agents of the process that is killed have ids that begin so. */
export const MORTAL = 'mortal-';
/** What the agent that calls a tool is told when the tool's agent, or the node that holds it, is cut off during the call. */
const CUT_OFF = ['AGENT_DISCONNECTED', 'TARGET_UNAVAILABLE'];
/** How far apart the clocks of one machine's processes may note one moment. */
const NOTED_WITHIN_MS = 1_000;

/** What was killed in a long run. */
export class Faults {
  /** Mesh nodes that were killed, by their id: when (milliseconds since 1970). */
  nodes = new Map();
  /** When the process with the mortal agents was killed. */
  agents = [];

  /** Whether a message may have failed with what its agent or node had in hand. */
  allows({ error_code, created_at, completed_at, dispatches }, toolFailures = []) {
    const ended = completed_at?.getTime() ?? Date.now();
    if (toolFailures.length > 0)
      return toolFailures.every(({ code }) => CUT_OFF.includes(code)) && this.#nodeKilled(created_at, ended);
    if (error_code !== 'AGENT_DISCONNECTED') return false;
    const { instance_id, mesh_id, sent_at } = dispatches.at(-1) ?? {};
    if (this.nodes.has(mesh_id)) return true;
    return instance_id?.startsWith(MORTAL) === true && this.agents.some((atMs) => within(atMs, sent_at, ended));
  }

  #nodeKilled(from, toMs) {
    return [...this.nodes.values()].some((atMs) => within(atMs, from, toMs));
  }
}

function within(atMs, from, toMs) {
  return atMs >= new Date(from).getTime() - NOTED_WITHIN_MS && atMs <= toMs + NOTED_WITHIN_MS;
}
