import { uuidv7 } from '../../../../runtime/ids.js';
import type { FixtureAgent } from '../../../mesh/fixture-agent.js';
import type { MeshFixture } from '../../../mesh/mesh-fixture.js';
import { type Dispatched, dispatched } from '../../../setup/agent.js';
import { gate, until } from '../../../setup/until.js';
import type { PlatformProcess } from './process.js';

/** An agent that serves any number of sessions, and one that serves one. */
export const AGENTS = ['steady', 'narrow'] as const;
export type AgentName = (typeof AGENTS)[number];
export const ANSWERS = ['completed', 'failed', 'asks', 'error', 'twice', 'in chunks'] as const;

/** A dispatch as it reached a socket. */
export interface Delivery {
  message_id: string;
  dispatch_id: string;
  socket: FixtureAgent;
  dispatch: Dispatched;
}

type Gate = ReturnType<typeof gate<void>>;

/** All that ever reached the agents, in order. */
export class Inbox {
  readonly deliveries: Delivery[] = [];
  readonly #arrivals = new Map<string, Gate>();

  take(socket: FixtureAgent, dispatch: Dispatched): void {
    const { dispatch_id, session_context } = dispatch.payload;
    this.deliveries.push({ message_id: session_context.message_id, dispatch_id, socket, dispatch });
    this.#arrival(dispatch_id).open();
  }

  /** Resolves once some socket has that dispatch. */
  arrived(dispatchId: string): Promise<void> {
    return this.#arrival(dispatchId).promise;
  }

  /** Deliveries of a message that can be answered. */
  open(messageId: string | undefined): Delivery[] {
    return this.deliveries.filter(({ message_id, socket }) => message_id === messageId && socket.isOpen);
  }

  #arrival(dispatchId: string): Gate {
    const arrival = this.#arrivals.get(dispatchId) ?? gate<void>();
    this.#arrivals.set(dispatchId, arrival);
    return arrival;
  }
}

/** An instance that comes, goes and comes back, over real sockets. */
export class FleetAgent {
  readonly name: string;
  socket: FixtureAgent | null = null;
  readonly #fixture: MeshFixture;
  readonly #inbox: Inbox;
  #resumeToken: string | undefined;

  constructor(name: string, fixture: MeshFixture, inbox: Inbox) {
    this.name = name;
    this.#fixture = fixture;
    this.#inbox = inbox;
  }

  /** @param resumes whether it brings the token of the connection before */
  async connect(process: PlatformProcess, resumes = false): Promise<void> {
    const socket = await process.node.socket(this.name);
    socket.onFrame((frame) => {
      if (frame.type === 'dispatch') this.#inbox.take(socket, dispatched(socket, frame));
    });
    this.socket = socket;
    const welcome = await socket.hello(resumes ? { resume_token: this.#resumeToken } : {});
    this.#resumeToken = welcome.resume_token;
  }

  /** The network takes the socket away; resolves when the platform has seen that. */
  async leave(): Promise<void> {
    this.socket?.kill();
    this.socket = null;
    await until(async () => (await this.#fixture.agent(this.name)).status === 'offline', {
      what: `${this.name} is offline`,
    });
  }
}

/** Answers on the socket that the dispatch came by. */
export function answer({ dispatch }: Delivery, how: (typeof ANSWERS)[number], text: string): void {
  if (how === 'asks') dispatch.ask({ kind: 'confirmation', title: 'Go on?' });
  else if (how === 'error') dispatch.error('HANDLER_ERROR', 'broke');
  else if (how === 'failed') dispatch.result(text, { status: { state: 'failed' } });
  else if (how === 'in chunks') {
    dispatch.chunk(0, text, true);
    dispatch.result('', { chunk_count: 1 });
  } else {
    dispatch.result(text);
    if (how === 'twice') dispatch.result(`${text}, again`);
  }
}

/** Resolves when the platform has read all that was sent on this socket so far, or the socket is gone. */
export async function allRead(socket: FixtureAgent): Promise<void> {
  const id = uuidv7();
  socket.send('dispatch_result', { result: 'of a dispatch that nobody knows' }, id);
  const refused = socket.next((frame) => frame.type === 'error' && frame.in_reply_to === id).then(() => undefined);
  await Promise.race([refused, socket.closed]);
  refused.catch(() => undefined);
}
