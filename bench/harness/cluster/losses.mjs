/** Which failures docs/durability.md allows, given what was killed and when. */

/** Agents of the process that is killed have ids that begin so. */
export const MORTAL = 'mortal-';
/** What the agent that calls a tool is told when the tool's agent, or the node that holds it, is cut off during the call. */
const CUT_OFF = ['AGENT_DISCONNECTED', 'TARGET_UNAVAILABLE'];
/** The same where connections stand still: the tool's agent takes no more for the moment. */
const STALLED = [...CUT_OFF, 'AGENT_BUSY'];
/** How far apart the clocks of one machine's processes may note one moment. */
const NOTED_WITHIN_MS = 1_000;

/** What was killed in a long run. */
export class Faults {
  /** Mesh nodes that were killed, by their id: when (milliseconds since 1970). */
  nodes = new Map();
  /** When the process with the mortal agents was killed. */
  agents = [];
  /** Whether connections were cut and stalled all the time. */
  isNetworkFaulty = false;
  /** Which agents left, and when (milliseconds since 1970) they left and were back. */
  leaves = [];

  /** Whether a message may have failed with what its agent or node had in hand. */
  allows({ error_code, created_at, completed_at, dispatches }, toolFailures = []) {
    const ended = completed_at?.getTime() ?? Date.now();
    const failedAs = toolFailures.map(({ code }) => code);
    if (failedAs.length > 0 && this.isNetworkFaulty) return failedAs.every((code) => STALLED.includes(code));
    if (failedAs.length > 0)
      return failedAs.every((code) => CUT_OFF.includes(code)) && this.#nodeKilled(created_at, ended);
    if (error_code !== 'AGENT_DISCONNECTED') return false;
    const { instance_id, mesh_id, sent_at } = dispatches.at(-1) ?? {};
    if (this.nodes.has(mesh_id)) return true;
    return instance_id?.startsWith(MORTAL) === true && this.agents.some((atMs) => within(atMs, sent_at, ended));
  }

  /** Whether the last dispatch was sent to an agent that left: on a network that stands still the two cross, and the agent never sees the dispatch. */
  crossedLeave({ error_code, completed_at, dispatches }) {
    if (!this.isNetworkFaulty || error_code !== 'AGENT_DISCONNECTED') return false;
    const { instance_id, sent_at } = dispatches.at(-1);
    return this.leaves.some(
      ({ instanceId, fromMs, toMs }) =>
        instanceId === instance_id && fromMs <= completed_at.getTime() && new Date(sent_at).getTime() <= toMs,
    );
  }

  #nodeKilled(from, toMs) {
    return [...this.nodes.values()].some((atMs) => within(atMs, from, toMs));
  }
}

function within(atMs, from, toMs) {
  return atMs >= new Date(from).getTime() - NOTED_WITHIN_MS && atMs <= toMs + NOTED_WITHIN_MS;
}
