import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, SILENT_LOG } from '../../../../sdk/index.js';

/** A connection of an agent. */
export interface Connected {
  meshId: string;
  resumed: boolean;
}

/** An agent on either SDK that counts, one number a chunk, until it is told that it is enough. */
export interface CountingAgent {
  /** Its connections so far. */
  readonly connected: readonly Connected[];
  readonly disconnections: number;
  /** Resolves at its first connection. */
  connect(): Promise<unknown>;
  enough(): void;
  close(): Promise<unknown>;
}

/** Where an agent joins. `ca`: the certificates, in PEM. */
export interface JoinOptions {
  type: string;
  url: string;
  clientId: string;
  clientSecret: string;
  ca: string;
}

/** The agent on the TypeScript SDK, in this process. */
export class TypeScriptAgent implements CountingAgent {
  readonly connected: Connected[] = [];
  disconnections = 0;
  readonly #agent: Agent;
  #isEnough = false;

  constructor(options: JoinOptions) {
    const instanceId = `${options.type}-1`;
    this.#agent = new Agent({ ...options, instanceId, drainOnSignals: false, log: SILENT_LOG });
    this.#agent.on('connected', (connection) => this.connected.push(connection));
    this.#agent.on('disconnected', () => {
      this.disconnections += 1;
    });
    this.#agent.onMessage(async (task) => {
      for (let number = 0; !this.#isEnough; number += 1) {
        await task.stream(`${number} `);
        await sleep(20);
      }
      return undefined;
    });
  }

  connect(): Promise<unknown> {
    return this.#agent.connect();
  }

  enough(): void {
    this.#isEnough = true;
  }

  close(): Promise<unknown> {
    return this.#agent.close(0).catch(() => undefined);
  }
}
