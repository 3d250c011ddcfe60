import { useSyncExternalStore } from 'react';
import type { StreamEvent } from '../../contracts/a2a/a2a.js';
import type { Part } from '../../contracts/a2a/parts.js';
import { ApiError } from '../api/call.js';
import { followBody, type Sending, sendBody, streamSend } from '../api/send.js';
import { after, type Live } from './turn.js';

/** A message of this tab, by the id that it was sent with. */
export interface Turn {
  parts: Part[];
  sentAt: string;
  agentType?: string;
  /** Undefined until the platform has accepted the message. */
  sessionId?: string;
  live?: Live;
  /** Why it could not be sent. */
  error?: ApiError;
}

const RETRY_MS = 3_000;
const RETRIES_MAX = 20;

const asApiError = (error: unknown) =>
  error instanceof ApiError ? error : new ApiError(0, 'AWAY', String(error instanceof Error ? error.message : error));

/** The streams of this tab. They outlive the view: leaving it breaks none off. */
class Talks {
  #turns: ReadonlyMap<string, Turn> = new Map();
  readonly #listeners = new Set<() => void>();
  readonly #reading = new Set<string>();

  readonly subscribe = (listener: () => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
  readonly snapshot = () => this.#turns;

  #set(id: string, turn: Turn | null): void {
    const next = new Map(this.#turns);
    if (turn) next.set(id, turn);
    else next.delete(id);
    this.#turns = next;
    for (const listener of this.#listeners) listener();
  }

  /** Sends a message. @returns its session, once the platform has accepted it; undefined where it refuses */
  async send(sending: Sending): Promise<string | undefined> {
    const { messageId: id, parts, agentType, contextId } = sending;
    const sentAt = new Date().toISOString();
    this.#set(id, { parts, sentAt, ...(agentType && { agentType }), ...(contextId && { sessionId: contextId }) });
    const events = streamSend(sendBody(sending));
    this.#reading.add(id);
    try {
      const first = await events.next();
      if (!first.done) this.#take(id, first.value);
    } catch (error) {
      this.#reading.delete(id);
      this.#set(id, { ...this.#turn(id), error: asApiError(error) });
      return undefined;
    }
    void this.#read(id, events);
    return this.#turns.get(id)?.sessionId;
  }

  /** Follows a message that runs, unless that is done already. */
  follow(id: string, messageId: string, parts: Part[], sentAt: string): void {
    if (this.#reading.has(id)) return;
    this.#reading.add(id);
    if (!this.#turns.has(id)) this.#set(id, { parts, sentAt });
    void this.#read(id, streamSend(followBody(messageId)));
  }

  /** Forgets a message that could not be sent. @returns what it was */
  forget(id: string): Turn | undefined {
    const turn = this.#turns.get(id);
    this.#set(id, null);
    return turn;
  }

  #turn(id: string): Turn {
    return this.#turns.get(id) ?? { parts: [], sentAt: '' };
  }

  #take(id: string, event: StreamEvent): void {
    const { error: _passed, ...turn } = this.#turn(id);
    const live = after(turn.live, event);
    this.#set(id, { ...turn, ...(live && { live, sessionId: live.sessionId }) });
  }

  /** Reads a stream to its end. One that breaks is opened again. */
  async #read(id: string, events: AsyncIterable<StreamEvent>): Promise<void> {
    let stream = events;
    for (let tries = 0; tries < RETRIES_MAX; tries += 1) {
      try {
        for await (const event of stream) this.#take(id, event);
      } catch {
        // It is read again below.
      }
      const { live } = this.#turn(id);
      if (!live || live.final) break;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      stream = streamSend(followBody(live.messageId));
    }
    this.#reading.delete(id);
    this.#set(id, this.#turn(id));
  }
}

export const talks = new Talks();

/** All messages that this tab has sent or follows. */
export function useTalks(): ReadonlyMap<string, Turn> {
  return useSyncExternalStore(talks.subscribe, talks.snapshot);
}
