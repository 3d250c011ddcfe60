import { refusal } from '../../tools/tool-result.js';

/** The first answer to a call that waits for a human; its result follows when there is a decision. */
export const ASKED_FIRST = refusal('APPROVAL_PENDING', 'A human is asked. The result follows.', true);

/** The result of an approved call that was made by a node which has stopped. Its outcome is not known here, and it is not made again: the tool may have run. */
export const NODE_LOST = refusal(
  'AGENT_DISCONNECTED',
  'The node that made the approved call has stopped; the tool may have run.',
);

/** The result of a call that waits, or has waited, for a human. */
interface HeldResult {
  withdrawn: AbortController;
  /** Aborted when the dispatch that made it ends: then nobody wants its result. */
  ended: AbortSignal | undefined;
  /** The input request that the call waits for. */
  requestId?: string;
  /** The frame with the result, if that came while the agent was away. */
  result?: string;
}

/**
 * The calls of connected agents that wait for a human. Their results go to whatever connection the agent has then; while it has none they are
 * kept until it resumes, or until the dispatch ends.
 */
export class HeldResults {
  readonly #send: (agentKey: string, frame: string) => boolean;
  readonly #answered: (agentKey: string, requestId: string) => void;
  /** By agent, then by the id of the call's frame. */
  readonly #byAgent = new Map<string, Map<string, HeldResult>>();

  /**
   * @param send returns false when the agent has no connection
   * @param answered called when the result of a call was sent
   */
  constructor(
    send: (agentKey: string, frame: string) => boolean,
    answered: (agentKey: string, requestId: string) => void,
  ) {
    this.#send = send;
    this.#answered = answered;
  }

  has(agentKey: string, frameId: string): boolean {
    return this.#byAgent.get(agentKey)?.has(frameId) === true;
  }

  /** The controller that withdraws a waiting call; undefined for a call that does not wait. */
  get(agentKey: string, frameId: string): AbortController | undefined {
    return this.#byAgent.get(agentKey)?.get(frameId)?.withdrawn;
  }

  add(agentKey: string, frameId: string, withdrawn: AbortController, ended?: AbortSignal): void {
    const ofAgent = this.#byAgent.get(agentKey) ?? new Map<string, HeldResult>();
    this.#byAgent.set(agentKey, ofAgent.set(frameId, { withdrawn, ended }));
    const drop = (): void => {
      if (ofAgent.get(frameId)?.result !== undefined) this.#remove(agentKey, frameId);
    };
    ended?.addEventListener('abort', drop, { once: true });
  }

  /** Notes the input request that a call waits for. */
  waitsFor(agentKey: string, frameId: string, requestId: string): void {
    const held = this.#byAgent.get(agentKey)?.get(frameId);
    if (held) held.requestId = requestId;
  }

  /** Sends the result of a call that waited for a human, or keeps it. @returns false if the call did not wait */
  answer(agentKey: string, frameId: string, frame: string): boolean {
    const held = this.#byAgent.get(agentKey)?.get(frameId);
    if (!held) return false;
    if (this.#goesOut(agentKey, held, frame) || held.ended?.aborted) this.#remove(agentKey, frameId);
    else held.result = frame;
    return true;
  }

  /** Sends what was kept for an agent. */
  flush(agentKey: string): void {
    for (const [frameId, held] of [...(this.#byAgent.get(agentKey) ?? [])])
      if (held.result !== undefined && this.#goesOut(agentKey, held, held.result)) this.#remove(agentKey, frameId);
  }

  #goesOut(agentKey: string, { requestId }: HeldResult, frame: string): boolean {
    if (!this.#send(agentKey, frame)) return false;
    if (requestId !== undefined) this.#answered(agentKey, requestId);
    return true;
  }

  #remove(agentKey: string, frameId: string): void {
    const ofAgent = this.#byAgent.get(agentKey);
    ofAgent?.delete(frameId);
    if (ofAgent?.size === 0) this.#byAgent.delete(agentKey);
  }
}
