import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import type { AgentRef } from '../../agents/agent-row.js';
import { errorMessage } from '../../runtime/errors.js';
import { agentKeyOf, newId } from '../../runtime/ids.js';
import { Loop } from '../../runtime/loop.js';
import type { MessageCore, QueueRef } from '../core.js';
import { queueTarget } from '../queue-target.js';
import type { DispatchRunner } from '../runner/runner.js';
import type { Taking } from '../runner/sender-options.js';
import { decideDispatch } from './dispatch-policy.js';
import type { DispatchEnd, Dispatches, NextDispatch, OpenDispatch } from './dispatches.js';
import type { IdleAgents } from './idle-agents.js';
import { LentPlaces } from './lent-places.js';
import { QueueRounds, type Queues } from './queues.js';

/** Dispatches that one transaction opens for an agent. */
const TAKEN_AT_ONCE = 16;
/** How often a node looks at all queues, for what a crash or a lost notice left undone. */
const EVERY_MS = 1_000;
/** Agents that are tried for a queue because this node remembers them as idle. */
const IDLE_TRIED = 4;
const TENANTS_AT_ONCE = 4;
/** Idle agents that are tried in one turn of a tenant that is at its bound. */
const LENDING_TRIED = 32;
/** Passes over a queue in one turn of its tenant. */
const PASSES_MAX = 16;
/** For so long after a look at all messages of an agent's queues takes may begin where that one found the oldest. */
const QUEUE_START_VALID_MS = 5_000;

/** An agent that is being filled. */
interface Filling {
  /** The agent may have got room meanwhile, and is filled once more. */
  again: boolean;
  /** How many messages it got. */
  done: Promise<number>;
}

interface TakerOptions {
  core: MessageCore;
  dispatches: Pick<Dispatches, 'release'>;
  queues: Queues;
  idle: IdleAgents;
  runner: Pick<
    DispatchRunner,
    'meshId' | 'reserve' | 'renewReservation' | 'releaseReservation' | 'roomFor' | 'running' | 'noteNothingSent'
  >;
  /** Sends a dispatch that is reserved here and on the record as sent by this node. */
  send(open: OpenDispatch): void;
}

/** The pause, in milliseconds, of an agent to which nothing could be sent. It begins with the first value and doubles up to the second. */
const [PAUSE_MIN_MS, PAUSE_MAX_MS] = [250, 10_000];
const PAUSED_MAX = 10_000;

/** An agent to which nothing could be sent. */
interface Pause {
  ms: number;
  /** On `performance.now()`. */
  untilMs: number;
}

/** A pass over a queue: `found`: agents of this node that have room; `taken`: how many messages agents of this node got. */
interface Pass {
  found: string[];
  taken: number;
}

/** The result if no take was tried. */
const NOTHING = { asked: 0, got: 0 };

/** Where the take behind a dispatch begins. */
export function validStart({ queue_start }: Pick<OpenDispatch, 'queue_start'>): Pick<NextDispatch, 'queue_start'> {
  const isValid = queue_start && performance.now() - queue_start.lookedAtAllMs < QUEUE_START_VALID_MS;
  return isValid ? { queue_start } : {};
}

/**
 * Takes queued messages for the agents of this node, whenever one may have room (db/functions/dispatches/take_messages.sql):
 * `fill` for one agent, `look` for one queue, the loop for every queue that is not empty, `sendNext` with the end of a dispatch.
 * `#lookAtAll` → `#lookAtTenant`, `look` → `#lookAt`, both → `#fillAgentsOf` a queue; that and `fill` → `#joinFill` → `#fillUntilFull` → `#take`;
 * `#lookAtTenant` → `#lend` → `#take`.
 */
export class Taker implements Taking {
  readonly #options: TakerOptions;
  /** Agents that are being filled. */
  readonly #filling = new Map<string, Filling>();
  /** Queues that are being looked at. */
  readonly #looking = new Map<string, { again: boolean }>();
  readonly #rounds: QueueRounds;
  readonly #underWay = new Set<Promise<void>>();
  readonly #tenantsUnderWay = new Set<string>();
  readonly #turns = pLimit(TENANTS_AT_ONCE);
  readonly #pauses = new LRUCache<string, Pause>({ max: PAUSED_MAX });
  readonly #lent: LentPlaces;
  /** Agents that had no room here when the end of a dispatch was recorded, because that dispatch itself still counted. `ended` fills them. */
  readonly #crowded = new Set<string>();
  readonly #loop: Loop;
  #isStopping = false;

  constructor(options: TakerOptions) {
    this.#options = options;
    this.#rounds = new QueueRounds(options.queues);
    const { limits, log } = options.core;
    this.#lent = new LentPlaces(limits);
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

  offerNext(ended: OpenDispatch): NextDispatch | undefined {
    const { core, runner } = this.#options;
    if (core.policies.concerns(ended.tenant_id, 'dispatch') || this.#isStopping) return undefined;
    if (this.#lent.mustRepay(ended)) return undefined;
    if (runner.roomFor(ended).atMost === 0) return undefined;
    const dispatch_id = newId('dsp');
    if (!runner.reserve(dispatch_id)) return undefined;
    return { mesh_id: runner.meshId, dispatch_id, ...validStart(ended) };
  }

  sendNext(offer: NextDispatch | undefined, ended: OpenDispatch, end: DispatchEnd | null): void {
    const { runner, send, idle } = this.#options;
    const next = end?.next;
    if (offer) {
      if (typeof next === 'object') send(next);
      runner.releaseReservation(offer.dispatch_id);
      // It may have been opened, and only the answer was lost.
      if (!end) runner.noteNothingSent({ tenant_id: ended.tenant_id, dispatch_id: offer.dispatch_id });
    }
    if (this.#lent.hasRepaid(ended, end !== null)) return;
    // Only the end of a message takes the next one in its transaction. A question and a detached loss take nothing, so the agent is filled here.
    if (!offer && runner.roomFor(ended).atMost === 0) this.#crowded.add(agentKeyOf(ended));
    else if (next === 'again' || end?.state === 'input_required' || end?.state === 'lost') this.fill(ended);
    else if (end && next === undefined && runner.running.countOf(agentKeyOf(ended)) <= 1) idle.add(ended);
  }

  /** A dispatch has ended and no longer counts here. If nothing could be sent to the agent, it gets a pause. */
  ended(open: OpenDispatch, { state }: DispatchEnd): void {
    const key = agentKeyOf(open);
    if (state !== 'not_sent') {
      this.#pauses.delete(key);
      if (this.#crowded.delete(key)) this.fill(open);
      return;
    }
    const ms = Math.min(PAUSE_MAX_MS, (this.#pauses.get(key)?.ms ?? PAUSE_MIN_MS / 2) * 2);
    this.#pauses.set(key, { ms, untilMs: performance.now() + ms });
    setTimeout(() => this.fill(open), ms).unref();
  }

  /** An agent may have got room: takes queued messages for it. Never throws; if it fails, the next look tries again. */
  fill(agent: AgentRef): void {
    const { tenant_id, instance_id } = agent;
    this.#inBackground(this.#joinFill(agent), { tenant_id, instance_id });
  }

  /** Messages wait in a queue: takes them for agents of this node that have room. Never throws. */
  look(queue: QueueRef): void {
    this.#inBackground(this.#lookAt(queue), { ...queue });
  }

  #inBackground(work: Promise<unknown>, about: Record<string, string>): void {
    const { log } = this.#options.core;
    const task = work
      .then(
        () => undefined,
        (error: unknown) => log.warn({ err: errorMessage(error), ...about }, 'queued messages could not be taken'),
      )
      .finally(() => this.#underWay.delete(task));
    this.#underWay.add(task);
  }

  /**
   * Gives each tenant a turn, so that one with thousands of queues, or whose queues cannot be read, does not delay another. A tenant whose turn is still under
   * way gets none in this round.
   */
  async #lookAtAll(): Promise<void> {
    const tenants = new Set(await this.#options.queues.tenantsWithQueues());
    this.#lent.keep(tenants);
    for (const tenant_id of tenants) {
      if (this.#tenantsUnderWay.has(tenant_id)) continue;
      this.#tenantsUnderWay.add(tenant_id);
      const turn = this.#turns(() => this.#lookAtTenant(tenant_id)).finally(() =>
        this.#tenantsUnderWay.delete(tenant_id),
      );
      this.#inBackground(turn, { tenant_id });
    }
  }

  async #lookAtTenant(tenantId: string): Promise<void> {
    const { runner } = this.#options;
    const found = new Set<string>();
    const queues = await this.#rounds.next(tenantId);
    let total = 0;
    for (const queue of queues) {
      for (let pass = 0, taken = 1; taken > 0 && pass < PASSES_MAX && !this.#isStopping; pass += 1) {
        const filled = await this.#fillAgentsOf(queue);
        taken = filled.taken;
        total += taken;
        for (const instance_id of filled.found) found.add(instance_id);
      }
    }
    const idle = [...found].filter(
      (instance_id) => runner.running.countOf(agentKeyOf({ tenant_id: tenantId, instance_id })) === 0,
    );
    const mayBeAtBound = queues.length > 0 && (total === 0 || idle.length > 0);
    if (mayBeAtBound && !this.#isStopping) await this.#lend(tenantId, idle);
  }

  /** If only the tenant's bound keeps agents idle, some of them get one message each, beginning with a random one. */
  async #lend(tenant_id: string, idle: string[]): Promise<void> {
    const { queues, runner } = this.#options;
    let left = this.#lent.settle(tenant_id, await queues.inFlight(tenant_id), runner.running.countOfTenant(tenant_id));
    const first = Math.floor(Math.random() * idle.length);
    for (const instance_id of [...idle.slice(first), ...idle.slice(0, first)].slice(0, LENDING_TRIED)) {
      if (left <= 0 || this.#isStopping) return;
      left -= (await this.#take({ tenant_id, instance_id }, this.#lent.most)).got;
    }
  }

  /** Fills agents of this node from a queue until it is empty, or none of them takes more. */
  async #lookAt(queue: QueueRef): Promise<void> {
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
        if ((await this.#fillAgentsOf(queue)).taken > 0) look.again = true;
      }
    } finally {
      this.#looking.delete(key);
    }
  }

  async #fillAgentsOf(queue: QueueRef): Promise<Pass> {
    const { core, idle, queues, runner } = this.#options;
    const { tenant_id } = queue;
    const idleIds = idle.some(tenant_id, queueTarget(queue.queue).agent_type, IDLE_TRIED);
    const found = await queues.agentsToFill(queue);
    for (const { instance_id, mesh_id } of found)
      if (mesh_id !== null && mesh_id !== runner.meshId) core.nodes.fill({ tenant_id, instance_id }, mesh_id);
    const own = found.filter(({ mesh_id }) => mesh_id === null || mesh_id === runner.meshId);
    const agents = new Set([...idleIds, ...own.map(({ instance_id }) => instance_id)]);
    const counts = await Promise.all([...agents].map((instance_id) => this.#joinFill({ tenant_id, instance_id })));
    const taken = counts.reduce((sum, count) => sum + count, 0);
    return { found: own.map(({ instance_id }) => instance_id), taken };
  }

  /** Fills an agent. If that is asked for again while it is being filled, it is filled once more. @returns how many messages it has got */
  #joinFill(agent: AgentRef): Promise<number> {
    const key = agentKeyOf(agent);
    const before = this.#filling.get(key);
    if (before) {
      before.again = true;
      return before.done;
    }
    const filling: Filling = { again: true, done: Promise.resolve(0) };
    this.#filling.set(key, filling);
    filling.done = this.#fillUntilFull(agent, filling);
    return filling.done;
  }

  async #fillUntilFull(agent: AgentRef, filling: Filling): Promise<number> {
    let taken = 0;
    try {
      while (filling.again && !this.#isStopping) {
        filling.again = false;
        const { asked, got } = await this.#take(agent);
        taken += got;
        filling.again ||= got > 0 && got === asked;
      }
      return taken;
    } finally {
      this.#filling.delete(agentKeyOf(agent));
    }
  }

  /**
   * @param lent if above 0, takes one message, as long as the tenant is less than this beyond its bound
   * @returns how many messages it asked for, and how many the agent has got
   */
  async #take(agent: AgentRef, lent = 0): Promise<{ asked: number; got: number }> {
    const { core, queues, runner, send } = this.#options;
    const { tenant_id } = agent;
    const { atMost, epoch } = runner.roomFor(agent);
    if (atMost === 0 || (this.#pauses.get(agentKeyOf(agent))?.untilMs ?? 0) > performance.now()) return NOTHING;
    await core.policies.guardsOf(tenant_id); // loads the tenant's policies, if they are not loaded
    const length = Math.min(lent > 0 ? 1 : TAKEN_AT_ONCE, atMost);
    const dispatchIds = Array.from({ length }, () => newId('dsp'));
    if (!dispatchIds.every((id) => runner.reserve(id))) return NOTHING;
    const asOpen = core.policies.concerns(tenant_id, 'dispatch');
    let isOutcomeKnown = false;
    try {
      const by = { mesh_id: runner.meshId, epoch, as_open: asOpen };
      const taken = await queues.take(agent, by, dispatchIds, lent);
      isOutcomeKnown = true;
      if (lent === 0 && taken.length > 0) this.#lent.forget(tenant_id);
      if (asOpen)
        await Promise.all(
          taken.map((open) => this.#decide(open).finally(() => runner.releaseReservation(open.dispatch_id))),
        );
      else for (const open of taken) send(open);
      return { asked: dispatchIds.length, got: taken.length };
    } finally {
      for (const dispatch_id of dispatchIds) {
        runner.releaseReservation(dispatch_id);
        if (!isOutcomeKnown) runner.noteNothingSent({ tenant_id, dispatch_id });
      }
    }
  }

  async #decide(open: OpenDispatch): Promise<void> {
    const { core, dispatches, send, runner } = this.#options;
    runner.renewReservation(open.dispatch_id);
    try {
      const sent = await decideDispatch(core, dispatches, open);
      if (sent) send(sent);
    } catch (error) {
      const { tenant_id, message_id, dispatch_id } = open;
      core.log.warn(
        { err: errorMessage(error), message_id, dispatch_id },
        'policies could not decide about a dispatch',
      );
      runner.noteNothingSent({ tenant_id, dispatch_id });
    }
  }
}
