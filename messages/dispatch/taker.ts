import pLimit from 'p-limit';
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
/** Queues of a tenant in one look; the next one goes on behind them. */
const QUEUES_MAX = 100;
const TENANTS_AT_ONCE = 4;

/** An agent that is being filled. */
interface Filling {
  /** It may have got room meanwhile. */
  again: boolean;
  /** How many messages it has got in the end. */
  done: Promise<number>;
}

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
  /** Agents that are being filled. */
  readonly #filling = new Map<string, Filling>();
  /** Queues that are being looked at. */
  readonly #looking = new Map<string, { again: boolean }>();
  /** The last queue that was seen of a tenant with more than one look takes. */
  readonly #seen = new Map<string, string>();
  readonly #underWay = new Set<Promise<void>>();
  readonly #loop: Loop;
  #isStopping = false;

  constructor(options: TakerOptions) {
    this.#options = options;
    const { log } = options.core;
    this.#loop = new Loop({ name: 'queues', intervalMs: EVERY_MS, work: () => this.#lookAtAll(), log });
  }

  start(): void {
    this.#loop.start();
  }

  /** Resolves when nothing is being taken any more. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#loop.stop();
    await Promise.all(this.#underWay);
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
    void this.#inBackground(this.#filled(agent), { ...agent });
  }

  /** Messages wait in a queue: agents of this node that have room get them. Never throws. */
  look(queue: WaitingQueue): void {
    void this.#inBackground(this.#lookAt(queue), { ...queue });
  }

  #inBackground(work: Promise<unknown>, about: Record<string, string>): Promise<void> {
    const { log } = this.#options.core;
    const task = work
      .then(
        () => undefined,
        (error: unknown) => log.warn({ err: errorMessage(error), ...about }, 'queued messages could not be taken'),
      )
      .finally(() => this.#underWay.delete(task));
    this.#underWay.add(task);
    return task;
  }

  /** Each tenant's queues in turns of its own, so that one with thousands, or one whose queues cannot be read, keeps none of another waiting. */
  async #lookAtAll(): Promise<void> {
    const tenants = await this.#options.queues.waitingTenants();
    const tenantAtOnce = pLimit(TENANTS_AT_ONCE);
    await Promise.all(
      tenants.map((tenant_id) => tenantAtOnce(() => this.#inBackground(this.#lookAtTenant(tenant_id), { tenant_id }))),
    );
  }

  async #lookAtTenant(tenantId: string): Promise<void> {
    const queues = await this.#options.queues.waitingQueues(tenantId, this.#seen.get(tenantId) ?? '', QUEUES_MAX);
    const last = queues.length === QUEUES_MAX ? queues.at(-1) : undefined;
    if (last) this.#seen.set(tenantId, last.queue);
    else this.#seen.delete(tenantId);
    for (const queue of queues) await this.#lookAt(queue);
  }

  /** Fills agents of this node from a queue until it is empty, or none of them takes more. */
  async #lookAt(queue: WaitingQueue): Promise<void> {
    const key = `${queue.tenant_id}/${queue.queue}`;
    const before = this.#looking.get(key);
    if (before) {
      before.again = true;
      return;
    }
    const look = { again: true };
    this.#looking.set(key, look);
    try {
      while (look.again && !this.#isStopping) {
        look.again = false;
        if ((await this.#fillFrom(queue)) > 0) look.again = true;
      }
    } finally {
      this.#looking.delete(key);
    }
  }

  /** @returns how many messages its agents have got */
  async #fillFrom(queue: WaitingQueue): Promise<number> {
    const { idle, queues, runner } = this.#options;
    const { tenant_id } = queue;
    const [, agentType = ''] = queue.queue.split('/', 2);
    const idleIds = idle.some(tenant_id, agentType, IDLE_TRIED);
    const found = await queues.agentsToFill(queue, runner.meshId);
    const agents = new Set([...idleIds, ...found.map(({ instance_id }) => instance_id)]);
    const counts = await Promise.all([...agents].map((instance_id) => this.#filled({ tenant_id, instance_id })));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Fills an agent; once more where that is asked for meanwhile. @returns how many messages it has got */
  #filled(agent: AgentRef): Promise<number> {
    const key = agentKeyOf(agent);
    const before = this.#filling.get(key);
    if (before) {
      before.again = true;
      return before.done;
    }
    const filling: Filling = { again: true, done: Promise.resolve(0) };
    this.#filling.set(key, filling);
    filling.done = this.#fill(agent, filling);
    return filling.done;
  }

  async #fill(agent: AgentRef, filling: Filling): Promise<number> {
    let taken = 0;
    try {
      while (filling.again && !this.#isStopping) {
        filling.again = false;
        const { asked, got } = await this.#takeFor(agent);
        taken += got;
        filling.again ||= got > 0 && got === asked;
      }
      return taken;
    } finally {
      this.#filling.delete(agentKeyOf(agent));
    }
  }

  async #takeFor({ tenant_id, instance_id }: AgentRef): Promise<{ asked: number; got: number }> {
    const { core, runner } = this.#options;
    await core.policies.guardsOf(tenant_id); // reads what is in force
    if (core.policies.concerns(tenant_id, 'dispatch')) return { asked: 0, got: 0 };
    const { atMost, epoch } = runner.roomFor({ tenant_id, instance_id });
    const dispatchIds = Array.from({ length: Math.min(TAKEN_AT_ONCE, atMost) }, () => newId('dsp'));
    if (dispatchIds.length === 0 || !dispatchIds.every((id) => runner.reserve(id))) return { asked: 0, got: 0 };
    return {
      asked: dispatchIds.length,
      got: await this.#take({ tenant_id, instance_id }, epoch, dispatchIds),
    };
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
