import type { WebSocket } from 'ws';
import type { DispatchRef } from '../../messages/dispatch/dispatches.js';
import { uuidOf } from '../../runtime/ids.js';
import { type Dispatched, dispatched, type Frame, RawAgent } from '../setup/agent.js';

/** A raw agent with the manners of a bad network. */
export class FixtureAgent extends RawAgent {
  readonly #ws: WebSocket;
  readonly #mute: boolean;

  constructor(ws: WebSocket, instanceId: string, mute: boolean) {
    super(ws, instanceId);
    this.#ws = ws;
    this.#mute = mute;
  }

  override send(type: string, payload: object, inReplyTo?: string): string {
    return this.#mute && type === 'pong' ? '' : super.send(type, payload, inReplyTo);
  }

  /** Sends bytes as a text message, whatever they are. */
  sendText(bytes: Buffer): void {
    this.#ws.send(bytes, { binary: false });
  }

  /** Sends a piece of a message. @param last it completes it */
  sendFragment(text: string, last: boolean): void {
    this.#ws.send(text, { fin: last });
  }

  /** Bytes that the other side has not taken yet. */
  get unsent(): number {
    return this.#ws.bufferedAmount;
  }

  /** Stops reading. */
  pause(): void {
    this.#ws.pause();
  }

  resume(): void {
    this.#ws.resume();
  }

  count(type: string): number {
    return this.received.filter((frame) => frame.type === type).length;
  }
}

/** Waits until the agent has that dispatch. */
export async function receive(agent: RawAgent, ref: DispatchRef): Promise<Dispatched> {
  const frameId = uuidOf(ref.dispatch_id);
  return dispatched(agent, await agent.next((frame) => frame.type === 'dispatch' && frame.id === frameId));
}

/** Waits for an `error` frame of that code. */
export function errorOf(agent: RawAgent, code: string): Promise<Frame> {
  return agent.next((frame) => frame.type === 'error' && frame.payload.code === code);
}
