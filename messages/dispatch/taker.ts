import type { AgentRef } from '../../agents/agent-row.js';
import { errorMessage } from '../../runtime/errors.js';
import { agentKeyOf, newId } from '../../runtime/ids.js';
import { Loop } from '../../runtime/loop.js';
import type { MessageCore } from '../core.js';
import type { DispatchRunner } from '../runner/runner.js';
import type { Taking } from '../runner/sender-options.js';
import type { DispatchEnd, NextDispatch, OpenDispatch } from './dispatches.js';
import type { IdleAgents } from './idle-agents.js';
import type { Queues, WaitingQueue } from './queues.js';

/** Dispatches that one transaction opens for an agent. */
const TAKEN_AT_ONCE = 16;
/** How often a node looks for queues whose agents have room: what a crash or a lost notice left undone. */
const EVERY_MS = 1_000;
/** Agents that are tried because they were idle. */
const IDLE_TRIED = 4;
/** Queues of one look. */
const QUEUES_MAX = 1_000;

interface TakerOptions {
  core: Pick<MessageCore, 'log' | 'policies'>;
  queues: Queues;
  idle: IdleAgents;
  runner: Pick<DispatchRunner, 'meshId' | 'reserve' | 'releaseReservation' | 'roomFor' | 'countOf'>;
  /** Sends a dispatch that is on the record as sent by this node. */
  run(open: OpenDispatch): void;
}

/** Takes queued messages for the agents of this node, whenever one may have room (db/functions/dispatches/take_messages.sql). */
export class Taker implements Taking {
  readonly #options: TakerOptions;
  /** Agents that are being filled; true: once more. */
  readonly #filling = new Map<string, boolean>();
  readonly #loop: Loop;

  constructor(options: TakerOptions) {
    this.#options = options;
    const { log } = options.core;
    this.#loop = new Loop({ name: 'queues', intervalMs: EVERY_MS, work: () => this.#lookAtAll(), log });
  }

  start(): void {
    this.#loop.start();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  offer(ended: OpenDispatch): NextDispatch | undefined {
    const { core, runner } = this.#options;
    if (core.policies.concerns(ended.tenant_id, 'dispatch')) return undefined;
    if (runner.roomFor(ended).atMost === 0) return undefined;
    const dispatch_id = newId('dsp');
    return runner.reserve(dispatch_id) ? { mesh_id: runner.meshId, dispatch_id } : undefined;
  }

  settle({ dispatch_id }: NextDispatch, ended: OpenDispatch, end: DispatchEnd | null): void {
    const next = end?.next;
    if (typeof next === 'object') this.#options.run(next);
    this.#options.runner.releaseReservation(dispatch_id);
    // Only what ends a message takes in its own transaction.
    if (next === 'again' || end?.state === 'input_required' || end?.state === 'lost') this.fill(ended);
    else if (end && next === undefined && this.#options.runner.countOf(agentKeyOf(ended)) <= 1)
      this.#options.idle.add(ended);
  }

  /** An agent may have got room: it gets what waits for it. Never throws; the next look repeats what fails. */
  fill(agent: AgentRef): void {
    const key = agentKeyOf(agent);
    const isFilling = this.#filling.has(key);
    this.#filling.set(key, isFilling);
    if (isFilling) return;
    void this.#fill(agent)
      .catch((error: unknown) =>
        this.#options.core.log.warn({ err: errorMessage(error), ...agent }, 'queued messages could not be taken'),
      )
      .finally(() => {
        const again = this.#filling.get(key);
        this.#filling.delete(key);
        if (again) this.fill(agent);
      });
  }

  /** Messages wait in a queue in which none did: an agent may have got room at the same moment. */
  look(queue: WaitingQueue): void {
    const { log } = this.#options.core;
    this.#fillFrom(queue).catch((error: unknown) =>
      log.warn({ err: errorMessage(error), ...queue }, 'a queue could not be looked at'),
    );
  }

  async #lookAtAll(): Promise<void> {
    for (const queue of await this.#options.queues.waitingQueues(QUEUES_MAX)) await this.#fillFrom(queue);
  }

  async #fillFrom(queue: WaitingQueue): Promise<void> {
    const { idle, queues, runner } = this.#options;
    const { tenant_id } = queue;
    const [, agentType = ''] = queue.queue.split('/', 2);
    for (const instance_id of idle.some(tenant_id, agentType, IDLE_TRIED)) this.fill({ tenant_id, instance_id });
    for (const agent of await queues.agentsToFill(queue, runner.meshId)) this.fill(agent);
  }

  async #fill({ tenant_id, instance_id }: AgentRef): Promise<void> {
    const { core, runner } = this.#options;
    await core.policies.guardsOf(tenant_id); // reads what is in force
    if (core.policies.concerns(tenant_id, 'dispatch')) return;
    for (let full = true; full; ) {
      const { atMost, epoch } = runner.roomFor({ tenant_id, instance_id });
      const dispatchIds = Array.from({ length: Math.min(TAKEN_AT_ONCE, atMost) }, () => newId('dsp'));
      if (dispatchIds.length === 0 || !dispatchIds.every((id) => runner.reserve(id))) return;
      full = (await this.#take({ tenant_id, instance_id }, epoch, dispatchIds)) === dispatchIds.length;
    }
  }

  /** @returns how many were taken */
  async #take(agent: AgentRef, epoch: number | null, dispatchIds: string[]): Promise<number> {
    const { queues, runner, run } = this.#options;
    try {
      const taken = await queues.take(agent, { mesh_id: runner.meshId, epoch }, dispatchIds);
      for (const open of taken) run(open);
      return taken.length;
    } finally {
      for (const id of dispatchIds) runner.releaseReservation(id);
    }
  }
}
