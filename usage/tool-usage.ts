import { randomUUID } from 'node:crypto';
import type { Db } from '../db/pool.js';
import type { Logger } from '../runtime/logger.js';
import { Loop } from '../runtime/loop.js';

/** Between two batches, in milliseconds: what a process that is killed has not added yet. */
const INTERVAL_MS = 500;
/** Different counts that one batch holds; further calls of the time count for no session. */
const COUNTS_MAX = 10_000;

/** Who made a tool call. */
export interface CountedCall {
  tenant_id: string;
  agent_type: string;
  instance_id?: string | undefined;
  session_id?: string | undefined;
}

interface Count {
  tenant_id: string;
  agent_type: string;
  instance_id: string;
  session_id: string;
  /** When the first of them was made. */
  at: Date;
  tool_calls: number;
}

interface Batch {
  sequence: number;
  counts: Count[];
}

const ADD = 'SELECT add_tool_calls($1, $2, $3)';

/**
 * Counts the tool calls of this process, which write no event. They are added to the sums in batches. A batch whose commit is in doubt is sent
 * again with its number, by which it is counted once.
 */
export class ToolUsage {
  readonly #db: Pick<Db, 'system'>;
  readonly #loop: Loop;
  readonly #source = randomUUID();
  #counts = new Map<string, Count>();
  #batch: Batch = { sequence: 0, counts: [] };

  constructor(db: Pick<Db, 'system'>, log: Logger) {
    this.#db = db;
    this.#loop = new Loop({ name: 'usage of tools', intervalMs: INTERVAL_MS, work: () => this.flush(), log });
  }

  start(): void {
    this.#loop.start();
  }

  /** Adds what has been counted. @throws when the database is away: the counts of the last half second are lost */
  async stop(): Promise<void> {
    await this.#loop.stop();
    await this.flush();
  }

  /** Counts a call that was made. */
  count({ tenant_id, agent_type, instance_id = '', session_id = '' }: CountedCall): void {
    const session = this.#counts.size < COUNTS_MAX ? session_id : '';
    const at = new Date();
    const key = JSON.stringify([tenant_id, agent_type, instance_id, session, Math.floor(at.getTime() / 3_600_000)]);
    const count = this.#counts.get(key) ?? {
      tenant_id,
      agent_type,
      instance_id,
      session_id: session,
      at,
      tool_calls: 0,
    };
    count.tool_calls += 1;
    this.#counts.set(key, count);
  }

  /** Adds what has been counted so far to the sums; the batch that failed before goes first. */
  async flush(): Promise<void> {
    if (this.#batch.counts.length > 0) await this.#send();
    if (this.#counts.size === 0) return;
    this.#batch = { sequence: this.#batch.sequence + 1, counts: [...this.#counts.values()] };
    this.#counts = new Map();
    await this.#send();
  }

  async #send(): Promise<void> {
    const { sequence, counts } = this.#batch;
    await this.#db.system((tx) => tx.query(ADD, [this.#source, sequence, JSON.stringify(counts)], 'add_tool_calls'));
    this.#batch = { sequence, counts: [] };
  }
}
