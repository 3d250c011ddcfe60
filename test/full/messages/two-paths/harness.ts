import type { DatabaseClock } from '../../../../db/database-clock.js';
import { sessionDeps } from '../../../../messages/cancel.js';
import { createSessions } from '../../../../sessions/sessions.js';
import type { MeshFixture } from '../../../mesh/mesh-fixture.js';
import { createGateway } from '../../../setup/gateway.js';
import { AGENTS, type AgentName, FleetAgent, Inbox } from './agents.js';
import { Faults, type Point } from './faults.js';
import { InFlight } from './in-flight.js';
import type { Context, Entry } from './life.js';
import { LossyNetwork } from './network.js';
import { FrontProcess, PlatformProcess, type Way } from './process.js';
import { Workflows } from './workflows.js';

/**
 * A platform of real parts: one process with the roles api and mesh at a time, where messages are forwarded also one with the role api, two agents on
 * real sockets, the workflows.
 */
export class Harness {
  readonly fixture: MeshFixture;
  readonly faults = new Faults();
  readonly inFlight = new InFlight();
  readonly inbox = new Inbox();
  readonly workflows: Workflows;
  readonly agents: Record<AgentName, FleetAgent>;
  /** The way in through another process, which stays whole. */
  readonly gateway: ReturnType<typeof createGateway>;
  readonly sessions: ReturnType<typeof createSessions>;
  /** Answers that were taken, by their dispatch. */
  readonly accepted: string[] = [];
  /** Messages whose owner slept through its lease on the fast path before it sent their first dispatch. */
  readonly lapsed: string[] = [];
  /** Once a fault has shifted it. */
  setClockBack: () => void = () => undefined;
  readonly #processes: PlatformProcess[] = [];
  readonly #afterwards: (() => Promise<unknown>)[] = [];
  readonly #way: Way;
  readonly #over = new AbortController();
  readonly #network: LossyNetwork | null;
  #front: FrontProcess | null = null;
  #fronts = 0;

  constructor(fixture: MeshFixture, way: Way, clock: DatabaseClock) {
    this.fixture = fixture;
    this.#way = way;
    this.#network = way === 'forwarded' ? new LossyNetwork(clock) : null;
    const core = { ...fixture.core, workflowStarter: this.#workflowStarter };
    this.gateway = createGateway(core);
    this.sessions = createSessions(sessionDeps(core));
    this.agents = {
      steady: new FleetAgent('steady', fixture, this.inbox),
      narrow: new FleetAgent('narrow', fixture, this.inbox),
    };
    this.workflows = new Workflows({
      core,
      tenantId: fixture.tenantId,
      inbox: this.inbox,
      faults: this.faults,
      inFlight: this.inFlight,
      processOf: (meshId) => this.#processes.find(({ node, life }) => life.alive && node.meshId === meshId),
      signal: this.#over.signal,
    });
  }

  /** What callers come to. */
  get entry(): Entry {
    return this.#front ?? this.process;
  }

  /** The process that agents come to, and callers where nothing is forwarded. */
  get process(): PlatformProcess {
    const newest = this.#processes.at(-1);
    if (!newest) throw new Error('no process was started');
    return newest;
  }

  get #workflowStarter() {
    return {
      message: ({ message_id }: { message_id: string }) => this.workflows.wake(message_id),
      session: () => undefined,
    };
  }

  async open(): Promise<void> {
    for (const [sessions, name] of AGENTS.entries()) {
      await this.fixture.database.query(
        `INSERT INTO agents (tenant_id, instance_id, agent_type, deployment_mode, status, max_concurrent_sessions)
         VALUES ($1, $2, $2, 'connected', 'offline', $3)`,
        [this.fixture.tenantId, name, sessions],
      );
    }
    await this.startProcess();
    for (const agent of Object.values(this.agents)) await agent.connect(this.process);
  }

  async close(): Promise<void> {
    this.setClockBack();
    this.#over.abort(new Error('the script is over'));
    for (const agent of Object.values(this.agents)) agent.socket?.kill();
    for (const process of this.#processes) if (process.life.alive) await process.kill();
    this.#front?.kill();
  }

  get #context(): Context {
    const accepted = (dispatchId: string) => void this.accepted.push(dispatchId);
    const taken = (dispatchId: string, over: Promise<unknown>) => this.inFlight.add(dispatchId, 'owner', over);
    const { fixture, faults } = this;
    return { fixture, workflowStarter: this.#workflowStarter, faults, network: this.#network, accepted, taken };
  }

  async startProcess(): Promise<void> {
    this.#processes.push(await PlatformProcess.start(this.#context, this.#way));
    if (!this.#front?.life.alive) this.#startFront();
  }

  #startFront(): void {
    if (this.#network) this.#front = new FrontProcess(this.#context, this.#network);
  }

  /** All agents that are here come to the present process. */
  async welcomeAgents(): Promise<void> {
    for (const agent of Object.values(this.agents)) if (agent.socket) await agent.connect(this.process);
  }

  /**
   * The process ends without a word, and the sockets with it. So does the one that takes the calls where it has forwarded nothing yet: else
   * it says of what it has accepted that nothing was sent, which no other process can say of itself.
   */
  async die(point?: Point): Promise<void> {
    for (const agent of Object.values(this.agents)) agent.socket?.kill();
    if (point === 'accepted') this.#front?.kill();
    await this.process.kill();
  }

  /** Every other time the process that takes the calls ends without a word, and another one takes its place: what it has forwarded goes on. */
  loseFront(): void {
    this.#fronts += 1;
    if (this.#fronts % 2 === 0 || !this.#front?.life.alive) return;
    this.#front.kill();
    this.#startFront();
  }

  /** Has that done when all is still. */
  afterwards(work: () => Promise<unknown>): void {
    this.#afterwards.push(work);
  }

  /** Goes on until all is still. After a death the next process comes up, the agents return, and the sweeper finds what was left behind. */
  async settle(): Promise<void> {
    await this.workflows.settle();
    this.setClockBack();
    for (const work of this.#afterwards.splice(0)) await work();
    if (!this.process.life.alive) {
      await this.startProcess();
      await this.welcomeAgents();
      await this.workflows.sweep();
    }
    await this.workflows.settle();
  }
}
