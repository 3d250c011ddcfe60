import { randomBytes } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { type Authenticator, createAuthenticator } from '../../auth/authenticator.js';
import { createCredential, credentialStatus } from '../../auth/credentials.js';
import { loadSigningKeys } from '../../auth/signing-keys.js';
import { createTokens, type TokenIssuer } from '../../auth/tokens.js';
import type { Caller } from '../../contracts/api/auth.js';
import type { UpdateGuardRequest } from '../../contracts/api/policies/guards.js';
import { POLICY_OPERATIONS } from '../../contracts/api/policies/policies.js';
import type { Db } from '../../db/pool.js';
import { createOutbound } from '../../http/outbound.js';
import type { MeshServerOptions } from '../../mesh/server/build-context.js';
import { MeshServer } from '../../mesh/server/server.js';
import { cancelMessage } from '../../messages/cancel.js';
import type { MessageCore, MessageRef } from '../../messages/core.js';
import { createDispatches } from '../../messages/dispatch/dispatch-store.js';
import type { Dispatches, DispatchRef } from '../../messages/dispatch/dispatches.js';
import { createQueues } from '../../messages/dispatch/queues.js';
import { DispatchRunner } from '../../messages/runner/runner.js';
import type { BusItem } from '../../messages/stream/bus.js';
import { takeStep } from '../../messages/supervise/next-step.js';
import { GuardCatalog } from '../../policy/guards/guard-catalog.js';
import { createPolicyCatalog } from '../../policy/policy-catalog.js';
import { type Clocks, DEFAULT_CLOCKS } from '../../runtime/clocks.js';
import { readConfig } from '../../runtime/config.js';
import { newId } from '../../runtime/ids.js';
import { createLogger } from '../../runtime/logger.js';
import { createSecrets } from '../../runtime/secrets.js';
import type { ToolCalls } from '../../tools/tool-calls.js';
import { createLocalLink, type NodeLink } from '../../tools/tool-link.js';
import { localCertificate } from '../sdk/certificate.js';
import { testAuthor } from '../setup/author.js';
import { insertAgent, insertTenant, messageCore, textMessage } from '../setup/core.js';
import type { FreshDatabase } from '../setup/database.js';
import { createGateway } from '../setup/gateway.js';
import { type DispatchReport, runDispatch, stepAndTake } from '../setup/take.js';
import { NO_SPANS, toolCalls } from '../setup/tools.js';
import { until } from '../setup/until.js';
import { FixtureAgent, receive } from './fixture-agent.js';

const log = createLogger({ level: process.env.MESH_TEST_LOG ?? 'silent' });
const secrets = createSecrets(randomBytes(32).toString('base64'));
const CreatePolicy = POLICY_OPERATIONS.createPolicy.request;
/** Of every node that is given no other. */
export const certificate = await localCertificate();
/** The node of hosted agents. */
export const HOSTED_BY = 'mesh_test';

/** One tenant with its credential, the functions of `messages/` on a real database, and mesh nodes under test. */
export class MeshFixture {
  readonly database: FreshDatabase;
  readonly core: MessageCore;
  readonly gateway: ReturnType<typeof createGateway>;
  readonly dispatches: ReturnType<typeof createDispatches>;
  readonly tokens: TokenIssuer;
  readonly authenticator: Authenticator;
  tenantId = '';
  credentialId = '';

  /** @param db another way to the same database, for what happens when that way is cut */
  constructor(database: FreshDatabase, db: Db = database.db()) {
    this.database = database;
    this.core = messageCore(db, { log });
    this.gateway = createGateway(this.core);
    this.dispatches = createDispatches(this.core);
    const tokens = createTokens({ loadKeys: () => loadSigningKeys(db, secrets), log });
    this.tokens = tokens;
    this.authenticator = createAuthenticator({
      tokens,
      lookup: (...of) => credentialStatus(db, ...of),
      clocks: { credentialCheckMs: 100 },
    });
  }

  /** A new tenant with a credential: what one test does is not seen by others. */
  async newTenant(): Promise<{ tenantId: string; credentialId: string }> {
    const tenantId = await insertTenant(this.database);
    const fields = { name: 'test', scopes: ['full' as const] };
    const issued = await this.core.db.tenant(tenantId, (tx) =>
      createCredential(tx, secrets, testAuthor(tenantId), fields),
    );
    return { tenantId, credentialId: issued.credential.credential_id };
  }

  async reset(): Promise<this> {
    Object.assign(this, await this.newTenant());
    return this;
  }

  get caller(): Caller {
    const { tenantId: tenant_id, credentialId: credential_id } = this;
    return { tenant_id, credential_id, agent_type: 'credential', scopes: ['full'], sub: 'tester', iat: 0, exp: 0 };
  }

  /** @param own claims that differ from those of the tenant's credential */
  token(expiresInSeconds = 3_600, own: Partial<Caller> = {}): Promise<string> {
    const { iat, exp, ...claims } = this.caller;
    return this.tokens.issueAccessToken({ ...claims, ...own }, expiresInSeconds);
  }

  /** A node of its own; closed with the test. */
  async node(options: NodeOptions = {}): Promise<MeshNodeUnderTest> {
    const { environment, meshId = newId('mesh'), db = this.core.db, inFlightMax, ...rest } = options;
    const { dispatches = this.dispatches, ...others } = rest;
    const { bus } = this.core;
    const { policies } = this.core;
    const clocks = { ...DEFAULT_CLOCKS, reconcileMs: 50, ...options.clocks };
    const shared = { dispatches, db, log };
    const { reconcileMs } = clocks;
    const runner = new DispatchRunner({ ...shared, bus, guards: policies, meshId, inFlightMax, reconcileMs });
    const server = new MeshServer({
      ...shared,
      fill: () => undefined,
      config: readConfig({ FLEET_MESH_PORT: '0', RESUME_WINDOW_MS: '60000', ...environment }),
      bus: runner.output,
      changes: bus,
      spans: NO_SPANS,
      runner,
      policies,
      authenticator: this.authenticator,
      tls: { cert: certificate.cert, key: certificate.key },
      tools: this.tools(createLocalLink(meshId), meshId),
      ...others,
      clocks,
    });
    const { port } = await server.listen();
    runner.start({ connected: server.transport });
    onTestFinished(async () => {
      await server.close();
      await runner.drain(0);
    });
    return new MeshNodeUnderTest(this, server, runner, port);
  }

  /** The tool calls of a node; what it requests from hosted agents ends with the test. */
  tools(link: NodeLink, meshId?: string): ToolCalls {
    const outbound = createOutbound({ allowCidrs: ['127.0.0.0/8'] });
    onTestFinished(() => outbound.close());
    const { core, tokens } = this;
    return toolCalls({ core, tokens, outbound, link, ...(meshId && { meshId }) });
  }

  /** Puts an agent on the record: a connected one that is offline, where its columns say nothing else. */
  register(instance_id: string, columns: Record<string, unknown> = {}): Promise<void> {
    const json = Object.entries(columns).map(([name, value]) => [
      name,
      value !== null && typeof value === 'object' ? JSON.stringify(value) : value,
    ]);
    const row = { tenant_id: this.tenantId, instance_id, status: 'offline', ...Object.fromEntries(json) };
    return insertAgent(this.database, row);
  }

  /** Changes columns of an agent. */
  setAgent(instanceId: string, assignments: string, ...values: unknown[]): Promise<unknown> {
    const ofAgent = `UPDATE agents SET ${assignments} WHERE tenant_id = $1 AND instance_id = $2`;
    return this.database.query(ofAgent, [this.tenantId, instanceId, ...values]);
  }

  /** Makes a policy, in force at once. @returns its id */
  async policy(request: object): Promise<string> {
    const { db, policies: engine } = this.core;
    const catalog = createPolicyCatalog({ db, secrets, outbound: { checkUrl: () => undefined }, engine });
    const { policy_id } = await catalog.create(testAuthor(this.tenantId), CreatePolicy.parse(request));
    return policy_id;
  }

  /** Changes the settings of a guard, in force at once. */
  guard(change: UpdateGuardRequest): Promise<unknown> {
    const { db, policies } = this.core;
    return new GuardCatalog(db, (tenantId) => policies.changed(tenantId)).update(testAuthor(this.tenantId), change);
  }

  async agent(instanceId: string): Promise<Record<string, unknown>> {
    const row = 'SELECT * FROM agents WHERE tenant_id = $1 AND instance_id = $2';
    return (await this.database.query(row, [this.tenantId, instanceId]))[0] ?? {};
  }

  /** Accepts a message, of that session or a new one, and opens its dispatch. */
  async open(text = 'hello', metadata: Record<string, unknown> = {}, contextId?: string): Promise<DispatchRef> {
    const { message_id } = await this.gateway.accept(
      this.caller,
      { message: textMessage(text, { contextId }), metadata },
      { method: 'message/send', baggage: 'team=blue' },
    );
    return this.nextDispatch({ tenant_id: this.tenantId, message_id });
  }

  /** Has an agent take a message: its evaluators may have to be waited for. */
  async nextDispatch({ tenant_id, message_id }: MessageRef): Promise<DispatchRef> {
    const { step, open } = await until(async () => {
      const taken = await stepAndTake(this.core, { tenant_id, message_id }, { meshId: HOSTED_BY });
      const isAsked = taken.step?.kind === 'waits' && taken.step.waits_for === 'evaluator';
      return isAsked ? undefined : taken;
    });
    if (!open) throw new Error(`no dispatch was opened: ${JSON.stringify(step)}`);
    return { tenant_id, message_id, dispatch_id: open.dispatch_id };
  }

  /** The agent takes a message, and policies do not decide about its dispatch: it stays open. */
  async undecided(instance_id: string): Promise<DispatchRef> {
    const { tenantId: tenant_id } = this;
    const { message_id } = await this.gateway.accept(
      this.caller,
      { message: textMessage('not sent yet'), metadata: { instance_id } },
      { method: 'message/send' },
    );
    await takeStep(this.core, { tenant_id, message_id }, 'process');
    const { mesh_id, connection_epoch } = await this.agent(instance_id);
    const by = { mesh_id: String(mesh_id), epoch: Number(connection_epoch), as_open: true };
    const dispatch_id = newId('dsp');
    await createQueues(this.core).take({ tenant_id, instance_id }, by, [dispatch_id]);
    return { tenant_id, message_id, dispatch_id };
  }

  message(ref: DispatchRef) {
    return this.gateway.get(this.caller, ref.message_id);
  }

  cancel(ref: DispatchRef): Promise<unknown> {
    return cancelMessage(this.core, ref, 'changed my mind');
  }

  watch(ref: DispatchRef): BusItem['event'][] {
    const seen: BusItem['event'][] = [];
    this.core.bus.subscribe(this.tenantId, ref.message_id, 0, ({ event }) => seen.push(event));
    return seen;
  }

  /** The payloads of the tenant's events of a type. */
  events(type: string): Promise<Record<string, unknown>[]> {
    const payloads = 'SELECT payload FROM events WHERE tenant_id = $1 AND event_type = $2 ORDER BY occurred_at';
    return this.database.column(payloads, [this.tenantId, type]);
  }
}

export type NodeOptions = Partial<Omit<MeshServerOptions, 'config' | 'clocks' | 'dispatches' | 'runner'>> &
  NodeSettings;

interface NodeSettings {
  clocks?: Partial<Clocks>;
  environment?: Record<string, string>;
  meshId?: string;
  dispatches?: Dispatches;
  inFlightMax?: number;
}

interface SocketOptions {
  token?: string;
  /** Does not answer pings. */
  mute?: boolean;
}

/** A mesh node with ways to reach it. */
export class MeshNodeUnderTest {
  readonly fixture: MeshFixture;
  readonly server: MeshServer;
  readonly runner: DispatchRunner;
  readonly meshId: string;
  readonly port: number;

  constructor(fixture: MeshFixture, server: MeshServer, runner: DispatchRunner, port: number) {
    this.fixture = fixture;
    this.server = server;
    this.runner = runner;
    this.meshId = runner.meshId;
    this.port = port;
  }

  /** An open socket that has not said hello. */
  async socket(instanceId: string, options: SocketOptions = {}): Promise<FixtureAgent> {
    const token = options.token ?? (await this.fixture.token());
    const url = `wss://127.0.0.1:${this.port}/agents/connect?instance_id=${instanceId}`;
    const ws = new WebSocket(url, 'service.v1', { ca: certificate.ca, headers: { authorization: `Bearer ${token}` } });
    const agent = new FixtureAgent(ws, instanceId, options.mute ?? false);
    onTestFinished(() => agent.kill());
    await new Promise<void>((resolve, reject) => {
      ws.once('open', () => resolve());
      ws.once('error', reject);
    });
    return agent;
  }

  /** Registers nothing: connects and says hello. */
  async join(instanceId: string, hello: Record<string, unknown> = {}, options: SocketOptions = {}) {
    const agent = await this.socket(instanceId, options);
    const welcome = await agent.hello(hello);
    return { agent, welcome };
  }

  /** Registers an agent and connects it, with these tools. */
  async enter(instanceId: string, tools: unknown[] = []) {
    await this.fixture.register(instanceId);
    return this.join(instanceId, { tools });
  }

  /** Sends a dispatch. */
  run(ref: DispatchRef): Promise<DispatchReport> {
    return runDispatch(this.runner, this.fixture.dispatches, ref);
  }

  /** Opens a dispatch to this agent, runs it, and waits until the agent has it. */
  async send(agent: FixtureAgent, text = 'hello', metadata: Record<string, unknown> = {}) {
    const ref = await this.fixture.open(text, { instance_id: agent.instanceId, ...metadata });
    const end = this.run(ref);
    return { ref, end, dispatch: await receive(agent, ref) };
  }
}
