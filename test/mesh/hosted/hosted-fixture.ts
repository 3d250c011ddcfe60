import { beforeAll, onTestFinished } from 'vitest';
import { sealCredential } from '../../../agents/dispatch-auth.js';
import type { DispatchAuth } from '../../../contracts/api/dispatch-auth.js';
import { createOutbound } from '../../../http/outbound.js';
import { AgentCredentials } from '../../../mesh/hosted/agent-credentials.js';
import { HostedTransport, type HostedTransportOptions } from '../../../mesh/hosted/hosted-transport.js';
import type { Dispatches, DispatchRef } from '../../../messages/dispatch/dispatches.js';
import { DispatchRunner } from '../../../messages/runner/runner.js';
import { createLogger } from '../../../runtime/logger.js';
import { insertAgent, insertTenant, TEST_SECRETS } from '../../setup/core.js';
import type { FreshDatabase } from '../../setup/database.js';
import { runDispatch } from '../../setup/take.js';
import { NO_SPANS } from '../../setup/tools.js';
import { HOSTED_BY, MeshFixture } from '../mesh-fixture.js';
import { type HostedAgentServer, hostedAgent, type Script } from './hosted-agent.js';

const INSTANCE = 'hosted-1';
const log = createLogger({ level: 'silent' });

/** One tenant with one hosted agent, and the hosted transport under test. */
export class HostedFixture extends MeshFixture {
  /** Registers the agent as `unknown`, which is what a new one is. */
  async registerAt(public_url: string, card: object = {}, auth?: DispatchAuth): Promise<void> {
    this.tenantId = await insertTenant(this.database);
    const nodes = 'INSERT INTO mesh_nodes (mesh_id) VALUES ($1) ON CONFLICT DO NOTHING';
    await this.database.query(nodes, [HOSTED_BY]);
    await insertAgent(this.database, {
      tenant_id: this.tenantId,
      instance_id: INSTANCE,
      public_url,
      status: 'unknown',
      agent_card: JSON.stringify(card),
      dispatch_auth: await this.core.db.tenant(this.tenantId, (tx) => sealCredential(tx, TEST_SECRETS, auth)),
    });
  }

  /** The runner of a node of its own, for hosted agents; closed with the test. */
  runner(options: Partial<HostedTransportOptions> & { dispatches?: Dispatches } = {}) {
    const outbound = createOutbound({ allowCidrs: ['127.0.0.0/8'] });
    const { bus, db } = this.core;
    const { dispatches = this.dispatches, ...others } = options;
    const shared = { dispatches, bus, db, log };
    const runner = new DispatchRunner({
      ...shared,
      guards: this.core.policies,
      meshId: HOSTED_BY,
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
    return {
      run: (ref: DispatchRef) => runDispatch(runner, dispatches, ref),
      cancel: (ref: DispatchRef, reason: string) => runner.cancel(ref, reason),
      close: (graceMs: number) => runner.drain(graceMs),
    };
  }

  /** The agent as it is on the record. */
  hosted(): Promise<Record<string, unknown>> {
    return this.agent(INSTANCE);
  }

  /** The instances that come last for a message. */
  unreachableIds(messageId: string): Promise<string[] | undefined> {
    return this.database.value('SELECT unreachable_ids FROM running_messages WHERE message_id = $1', [messageId]);
  }

  dispatchState(ref: DispatchRef): Promise<string | undefined> {
    return this.database.value('SELECT state FROM dispatches WHERE dispatch_id = $1', [ref.dispatch_id]);
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
    return database.drop;
  });

  /** A fixture whose agent is at this address. */
  const fixtureAt = async (publicUrl: string, card: object = {}, auth?: DispatchAuth): Promise<HostedFixture> => {
    const fixture = new HostedFixture(database);
    await fixture.registerAt(publicUrl, card, auth);
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
    return { ...made, ref, end, record: await made.fixture.message(ref) };
  };
  return { fixtureAt, fixture, outcomeOf };
}

/** The card of an agent that answers `message/stream`. */
export const STREAMING = { capabilities: { streaming: true } };
export const CLOSED = { kind: 'closed' };
