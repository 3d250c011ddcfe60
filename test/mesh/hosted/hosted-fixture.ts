import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { sealCredential } from '../../../agents/dispatch-auth.js';
import type { Caller } from '../../../contracts/api/auth.js';
import type { DispatchAuth } from '../../../contracts/api/dispatch-auth.js';
import { createOutbound } from '../../../http/outbound.js';
import { AgentCredentials } from '../../../mesh/hosted/agent-credentials.js';
import { HostedTransport, type HostedTransportOptions } from '../../../mesh/hosted/hosted-transport.js';
import type { MessageCore } from '../../../messages/core.js';
import { createDispatches } from '../../../messages/dispatch/dispatch-store.js';
import type { Dispatches, DispatchRef } from '../../../messages/dispatch/dispatches.js';
import { DispatchRunner } from '../../../messages/runner/runner.js';
import type { BusItem } from '../../../messages/stream/bus.js';
import { newId } from '../../../runtime/ids.js';
import { createLogger } from '../../../runtime/logger.js';
import { callerOf, messageCore, TEST_SECRETS } from '../../setup/core.js';
import type { FreshDatabase } from '../../setup/database.js';
import { createGateway } from '../../setup/gateway.js';
import { type DispatchReport, runDispatch, stepAndTake } from '../../setup/take.js';
import { NO_SPANS } from '../../setup/tools.js';
import { type HostedAgentServer, hostedAgent, type Script } from './hosted-agent.js';

const INSTANCE = 'hosted-1';
const MESH = 'mesh_test';
const log = createLogger({ level: 'silent' });

interface AgentRow {
  status: string;
  consecutive_failures: number;
}

/** One tenant with one hosted agent, the functions of `messages/` on a real database, and the hosted transport under test. */
export class HostedFixture {
  readonly database: FreshDatabase;
  readonly core: MessageCore;
  readonly gateway: ReturnType<typeof createGateway>;
  readonly dispatches: ReturnType<typeof createDispatches>;
  readonly tenantId = newId('ten');
  readonly caller: Caller;

  constructor(database: FreshDatabase) {
    this.database = database;
    this.core = messageCore(database.db());
    this.gateway = createGateway(this.core);
    this.dispatches = createDispatches(this.core);
    this.caller = callerOf(this.tenantId);
  }

  /** Registers the agent as `unknown`, which is what a new one is. */
  async register(publicUrl: string, card: object = {}, auth?: DispatchAuth): Promise<void> {
    await this.database.query("INSERT INTO tenants (tenant_id, name) VALUES ($1, 'test') ON CONFLICT DO NOTHING", [
      this.tenantId,
    ]);
    await this.database.query('INSERT INTO mesh_nodes (mesh_id) VALUES ($1) ON CONFLICT DO NOTHING', [MESH]);
    await this.database.query(
      `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, public_url, status, max_concurrent_sessions, agent_card, dispatch_auth)
       VALUES ($1, $2, 'travel', 'hosted', $3, 'unknown', 0, $4, $5)`,
      [this.tenantId, INSTANCE, publicUrl, JSON.stringify(card), await this.seal(auth)],
    );
  }

  /** The credential of an agent as it is stored. */
  seal(auth: DispatchAuth | undefined): Promise<Buffer | null> {
    return this.core.db.tenant(this.tenantId, (tx) => sealCredential(tx, TEST_SECRETS, auth));
  }

  /** Accepts a message and opens its dispatch. */
  async open(text = 'hello', metadata: Record<string, unknown> = {}): Promise<DispatchRef> {
    const { message_id } = await this.gateway.accept(
      this.caller,
      {
        message: { kind: 'message', messageId: newId('msg'), role: 'user', parts: [{ kind: 'text', text }] },
        metadata,
      },
      { method: 'message/send', baggage: 'team=blue' },
    );
    return this.reopen(message_id);
  }

  /** Has its agent take a message. */
  async reopen(message_id: string): Promise<DispatchRef> {
    const { step, open } = await stepAndTake(this.core, { tenant_id: this.tenantId, message_id }, { meshId: MESH });
    if (!open) throw new Error(`no dispatch was opened: ${JSON.stringify(step)}`);
    return { tenant_id: this.tenantId, message_id, dispatch_id: open.dispatch_id };
  }

  /** The runner of a node of its own, for hosted agents; closed with the test. */
  runner(options: Partial<HostedTransportOptions> & { dispatches?: Dispatches } = {}): HostedRunner {
    const outbound = createOutbound({ allowCidrs: ['127.0.0.0/8'] });
    const { bus, db } = this.core;
    const { dispatches = this.dispatches, ...others } = options;
    const shared = { dispatches, bus, db, log };
    const runner = new DispatchRunner({
      ...shared,
      guards: this.core.policies,
      meshId: MESH,
      reconcileMs: 50,
    });
    const hosted = new HostedTransport({
      ...shared,
      bus: runner.output,
      changes: bus,
      spans: NO_SPANS,
      outbound,
      tokens: { issueDispatchToken: async ({ instance_id }) => `jwt-for-${instance_id}` },
      credentials: new AgentCredentials({ outbound, secrets: TEST_SECRETS, pausesMs: [1, 1] }),
      closing: runner.closing,
      pace: { firstMs: 10, maxMs: 20 },
      fill: () => undefined,
      ...others,
    });
    runner.start({ hosted });
    onTestFinished(async () => {
      await runner.drain(0);
      await outbound.close();
    });
    return new HostedRunner(runner, dispatches);
  }

  /** Everything that watchers of a message are told, from the start. */
  watch(messageId: string): BusItem['event'][] {
    const seen: BusItem['event'][] = [];
    this.core.bus.subscribe(this.tenantId, messageId, 0, ({ event }) => seen.push(event));
    return seen;
  }

  get(messageId: string) {
    return this.gateway.get(this.caller, messageId);
  }

  async agent(): Promise<AgentRow | undefined> {
    const [row] = await this.database.query<AgentRow>(
      'SELECT status, consecutive_failures FROM agents WHERE tenant_id = $1',
      [this.tenantId],
    );
    return row;
  }

  /** The instances that come last for a message. */
  async unreachableIds(messageId: string): Promise<string[] | undefined> {
    const [row] = await this.database.query<{ unreachable_ids: string[] }>(
      'SELECT unreachable_ids FROM running_messages WHERE message_id = $1',
      [messageId],
    );
    return row?.unreachable_ids;
  }

  async dispatchState(ref: DispatchRef): Promise<string | undefined> {
    const [row] = await this.database.query<{ state: string }>('SELECT state FROM dispatches WHERE dispatch_id = $1', [
      ref.dispatch_id,
    ]);
    return row?.state;
  }

  events(type: string): Promise<{ payload: Record<string, unknown> }[]> {
    return this.database.query(
      'SELECT payload FROM events WHERE tenant_id = $1 AND event_type = $2 ORDER BY event_id',
      [this.tenantId, type],
    );
  }
}

/** The runner of a node. */
class HostedRunner {
  readonly #runner: DispatchRunner;
  readonly #dispatches: Dispatches;

  constructor(runner: DispatchRunner, dispatches: Dispatches) {
    this.#runner = runner;
    this.#dispatches = dispatches;
  }

  run(ref: DispatchRef): Promise<DispatchReport> {
    return runDispatch(this.#runner, this.#dispatches, ref);
  }

  cancel(ref: DispatchRef, reason: string): Promise<void> {
    return this.#runner.cancel(ref, reason);
  }

  close(graceMs: number): Promise<void> {
    return this.#runner.drain(graceMs);
  }
}

/**
 * What most tests begin with, on a database of the test file's own.
 * @param open the set-up's `freshDatabase`: the run starts a server for files that import it
 */
export function hostedSetup(open: () => Promise<FreshDatabase>) {
  let database: FreshDatabase;
  beforeAll(async () => {
    database = await open();
  });
  afterAll(() => database?.drop());

  /** A fixture whose agent is at this address. */
  const fixtureAt = async (publicUrl: string, card: object = {}, auth?: DispatchAuth): Promise<HostedFixture> => {
    const fixture = new HostedFixture(database);
    await fixture.register(publicUrl, card, auth);
    return fixture;
  };
  const fixture = async (
    script: Script,
    card: object = {},
  ): Promise<{ fixture: HostedFixture; agent: HostedAgentServer }> => {
    const agent = await hostedAgent(script);
    return { fixture: await fixtureAt(`${agent.url}/a2a`, card), agent };
  };
  /** Sends one message to an agent with this script and gives what became of it. */
  const outcomeOf = async (script: Script, card: object = {}, metadata: Record<string, unknown> = {}) => {
    const made = await fixture(script, card);
    const ref = await made.fixture.open('hello', metadata);
    const end = await made.fixture.runner().run(ref);
    return { ...made, ref, end, record: await made.fixture.get(ref.message_id) };
  };
  return { fixtureAt, fixture, outcomeOf };
}

/** The card of an agent that answers `message/stream`. */
export const STREAMING = { capabilities: { streaming: true } };
export const CLOSED = { kind: 'closed' };
