import { openDb } from '../../../db/pool.js';
import { changeConnection, openConnection } from '../../../mesh/connection/connection-rows.js';
import { cancelMessage } from '../../../messages/cancel.js';
import { PlatformError } from '../../../runtime/errors.js';
import { createLogger } from '../../../runtime/logger.js';
import { insertTenant } from '../../setup/core.js';
import type { FreshDatabase } from '../../setup/database.js';
import { MESH, RoutingFixture, type Sent } from './fixture.js';

/** Each has connections and groups of calls of its own. */
const PROCESSES = 3;
const AGENTS = 12;
const NODES = [MESH, 'mesh_2'];
const WISHES = [{ agent_type: 'worker' }, { agent_type: 'worker', skill_id: 'sums' }, { instance_id: 'a1' }];

export interface CapacityStep {
  action: keyof typeof ACTIONS;
  /** Modulo the number of what there is. */
  target: number;
  process: number;
}

interface SentDispatch {
  tenant_id: string;
  message_id: string;
  session_id: string;
  dispatch_id: string;
  instance_id: string;
  epoch: number;
}

/** A tenant with a dozen agents of one type with one to three sessions each, on two nodes, and several processes that send to them. */
export class CapacityDriver {
  /** How often each thing happened, in all runs. */
  readonly counts = {
    dispatched: 0,
    waited: 0,
    routed: 0,
    ended: 0,
    asked: 0,
    canceled: 0,
    lost: 0,
    returned: 0,
    full: 0,
  };
  readonly database: FreshDatabase;
  readonly #processes: RoutingFixture[];
  #tenantId = '';

  constructor(database: FreshDatabase) {
    this.database = database;
    const log = createLogger({ level: 'error' });
    this.#processes = Array.from({ length: PROCESSES }, () => {
      const db = openDb({ url: database.url, max: 8, log });
      return new RoutingFixture(database, db);
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#processes.map(({ core }) => core.db.close()));
  }

  async reset(): Promise<void> {
    this.#tenantId = await insertTenant(this.database);
    for (const process of this.#processes) process.tenantId = this.#tenantId;
    const [first] = this.#processes;
    for (let n = 0; n < AGENTS; n += 1)
      await first?.agent(`a${n}`, {
        mesh_id: NODES[n % 2],
        max_concurrent_sessions: 1 + (n % 3),
        skills: n < AGENTS / 2 ? ['sums'] : [],
      });
  }

  process(number: number): RoutingFixture {
    return this.#processes[number % PROCESSES] as RoutingFixture;
  }

  run({ action, target, process }: CapacityStep): Promise<void> {
    return ACTIONS[action](this, this.process(process), target);
  }

  async send(process: RoutingFixture, wish: (typeof WISHES)[number]): Promise<Sent> {
    const sent = await process.send(wish, { anyMesh: true });
    if (sent.verdict === 'dispatched') this.counts.dispatched += 1;
    else this.counts.waited += 1;
    return sent;
  }

  /** One look of a waiting message's workflow, and what a node does then. @returns whether an agent has it now */
  async route(process: RoutingFixture, message_id: string): Promise<boolean> {
    const ref = { tenant_id: this.#tenantId, message_id };
    const step = await process.look(ref);
    if (step?.kind !== 'dispatch') return false;
    const dispatch = { ...ref, dispatch_id: step.dispatch_id };
    const open = await process.dispatches.find(dispatch);
    const sent = open && (await process.dispatches.markSent(dispatch, { mesh_id: MESH, epoch: open.epoch }));
    if (sent) this.counts.routed += 1;
    return Boolean(sent);
  }

  unfinished(): Promise<{ message_id: string }[]> {
    return this.database.query(
      `SELECT message_id FROM messages WHERE tenant_id = $1 AND state NOT IN ('completed', 'failed', 'canceled')`,
      [this.#tenantId],
    );
  }

  waiting(): Promise<{ message_id: string }[]> {
    return this.database.query(
      `SELECT message_id FROM running_messages WHERE tenant_id = $1 AND state = 'submitted' ORDER BY created_at, message_id`,
      [this.#tenantId],
    );
  }

  sent(): Promise<SentDispatch[]> {
    return this.database.query(
      `SELECT d.tenant_id, d.message_id, m.session_id, d.dispatch_id, d.instance_id, d.epoch FROM dispatches d
         JOIN messages m USING (tenant_id, message_id) WHERE d.tenant_id = $1 AND d.state = 'sent' ORDER BY d.dispatch_id`,
      [this.#tenantId],
    );
  }

  /** Of each agent its room, the sessions with a dispatch on it by the dispatches themselves, and its load as routing counts it. */
  agents(): Promise<
    { instance_id: string; room: number; sessions: number; load: number; epoch: number; mesh_id: string | null }[]
  > {
    return this.database.query(
      `SELECT a.instance_id, a.max_concurrent_sessions AS room, agent_load(a.tenant_id, a.instance_id) AS load, a.mesh_id,
              a.connection_epoch::int AS epoch, (SELECT count(DISTINCT m.session_id)::int FROM dispatches d JOIN messages m USING (tenant_id, message_id)
                WHERE d.tenant_id = a.tenant_id AND d.instance_id = a.instance_id AND d.state IN ('open', 'sent')) AS sessions
         FROM agents a WHERE a.tenant_id = $1 ORDER BY a.instance_id`,
      [this.#tenantId],
    );
  }

  async end(process: RoutingFixture, dispatch: SentDispatch, state: 'completed' | 'input-required'): Promise<boolean> {
    const produced = { artifacts: [], usage: null };
    const input = state === 'input-required' ? { input_request: { title: 'Go on?' } } : {};
    const { epoch, ...ref } = dispatch;
    return (await process.dispatches.end({ ...ref, produced }, { state, artifacts: [], ...input }, epoch)) !== null;
  }

  cancel(process: RoutingFixture, message_id: string): Promise<void> {
    return cancelMessage(process.core, { tenant_id: this.#tenantId, message_id }, 'test');
  }

  /** The agent's socket is lost for good: what it had fails. */
  async lose(process: RoutingFixture, instance_id: string): Promise<void> {
    const [agent] = (await this.agents()).filter((one) => one.instance_id === instance_id);
    if (!agent?.mesh_id) return;
    const { db } = process.core;
    const connection = { tenant_id: this.#tenantId, instance_id, epoch: agent.epoch };
    await db.tenant(this.#tenantId, (tx) => changeConnection(tx, connection, { status: 'offline' }));
    for (const dispatch of (await this.sent()).filter((one) => one.instance_id === instance_id))
      if (await process.dispatches.failAsLost(dispatch, 'AGENT_DISCONNECTED')) this.counts.lost += 1;
  }

  /** The agent connects, to another node than before. Without a resume token, what it had fails. */
  async connect(process: RoutingFixture, instance_id: string, node: number): Promise<void> {
    const { db } = process.core;
    const tenant_id = this.#tenantId;
    const mesh_id = NODES[node % NODES.length] as string;
    const opening = {
      tenant_id,
      instance_id,
      mesh_id,
      hello: { instance_id, agent_type: 'worker' },
      decided: [],
      resumes: null,
    };
    const opened = await db.tenant(tenant_id, (tx) => openConnection(tx, opening));
    if (typeof opened === 'string') throw new Error(`no connection: ${opened}`);
    for (const ref of opened.open) await process.dispatches.failAsLost({ ...ref, tenant_id }, 'AGENT_DISCONNECTED');
    this.counts.returned += 1;
  }
}

type Action = (driver: CapacityDriver, process: RoutingFixture, target: number) => Promise<void>;

const pick = <T>(all: T[], target: number): T | undefined => all[target % all.length];
const onSent =
  (work: (driver: CapacityDriver, process: RoutingFixture, dispatch: SentDispatch) => Promise<void>): Action =>
  async (driver, process, target) => {
    const dispatch = pick(await driver.sent(), target);
    if (dispatch) await work(driver, process, dispatch);
  };
const ending = (state: 'completed' | 'input-required', counted: 'ended' | 'asked') =>
  onSent(async (driver, process, dispatch) => {
    if (await driver.end(process, dispatch, state)) driver.counts[counted] += 1;
  });

/** What happens to a fleet at work. */
export const ACTIONS = {
  send: async (driver, process, target) => {
    const wish = pick(WISHES, target);
    if (wish) await driver.send(process, wish);
  },
  route: async (driver, process, target) => {
    const message = pick(await driver.waiting(), target);
    if (message) await driver.route(process, message.message_id);
  },
  complete: ending('completed', 'ended'),
  ask: ending('input-required', 'asked'),
  cancel: onSent(async (driver, process, { message_id }) => {
    // Another of the moment may have ended it.
    try {
      await driver.cancel(process, message_id);
      driver.counts.canceled += 1;
    } catch (error) {
      if (!(error instanceof PlatformError) || error.code !== 'ALREADY_TERMINAL') throw error;
    }
  }),
  disconnect: (driver, process, target) => driver.lose(process, `a${target % AGENTS}`),
  connect: (driver, process, target) => driver.connect(process, `a${target % AGENTS}`, target),
} satisfies Record<string, Action>;
