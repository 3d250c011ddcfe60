import { createRecordActivities, type RecordActivities } from '../../../../activities/record.js';
import type { MessageCore, MessageRef } from '../../../../messages/core.js';
import { createDispatches } from '../../../../messages/dispatch/dispatch-store.js';
import type { DispatchRef } from '../../../../messages/dispatch/dispatches.js';
import type { Step } from '../../../../messages/supervise/step.js';
import { Sweeper } from '../../../../messages/supervise/sweeper.js';
import type { Inbox } from './agents.js';
import type { Faults } from './faults.js';
import type { InFlight } from './in-flight.js';
import { DeadProcess } from './life.js';
import type { PlatformProcess } from './process.js';

/** More looks than this in one go are a loop. */
const LOOKS_MAX = 200;

type DispatchStep = Extract<Step, { kind: 'dispatch' }>;

/** What the workflows see of the world. */
export interface WorkflowsContext {
  core: MessageCore;
  tenantId: string;
  inbox: Inbox;
  faults: Faults;
  inFlight: InFlight;
  /** Who serves the queue of a node. */
  processOf(meshId: string | null): PlatformProcess | undefined;
  /** Aborted when the script is over. */
  signal: AbortSignal;
}

/**
 * The message workflows of workflows/message.ts and the cluster that runs them: the same loop over the same activities, but one look at a
 * time and when the script says so, so that on both paths things happen in the same order. The pauses of the loop are left out.
 */
export class Workflows {
  readonly #context: WorkflowsContext;
  readonly #record: RecordActivities;
  readonly #sweeper: Sweeper;
  readonly #woken = new Set<string>();
  readonly #waiting = new Set<string>();
  /** Ends that are being recorded, of dispatches that may have reached their agents long before. */
  readonly #recording = new Set<Promise<void>>();

  constructor(context: WorkflowsContext) {
    this.#context = context;
    this.#record = createRecordActivities(context.core, createDispatches(context.core));
    this.#sweeper = new Sweeper(context.core, {
      wakeMessage: async ({ message_id }) => this.wake(message_id),
      wakeSession: async () => undefined, // idling out is not part of the script
      fateOfMessage: async () => 'running',
      fateOfSession: async () => 'running',
    });
  }

  wake(messageId: string): void {
    this.#woken.add(messageId);
  }

  /** A round of the sweeper long after: leases have run out, and wake-ups that nobody answered are repeated. */
  async sweep(): Promise<void> {
    await this.#context.core.db.system((tx) =>
      tx.query(
        `UPDATE running_messages SET wake_requested_at = now() - interval '1 h' WHERE wake_requested_at IS NOT NULL`,
      ),
    );
    await this.#sweeper.sweep();
  }

  /** Goes on until everything waits for somebody outside: an agent, a human, a free slot. */
  async settle(): Promise<void> {
    for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
      await this.#context.inFlight.quiet(this.#context.inbox);
      await Promise.all(this.#recording);
      const [next] = [...this.#woken].sort();
      if (next !== undefined) await this.look(next);
      else if (!(await this.#lookForAgents())) return;
    }
    throw new Error('the workflows go round in circles');
  }

  /** One turn of a message's workflow; what it begins goes on by itself. */
  async look(messageId: string): Promise<void> {
    this.#woken.delete(messageId);
    this.#waiting.delete(messageId);
    const ref = { tenant_id: this.#context.tenantId, message_id: messageId };
    const step = await this.#record.nextStep({ ...ref, session_id: '' });
    if (!step) throw new Error('a workflow runs for a message that is not there');
    if (step.kind === 'wait_agent') this.#waiting.add(messageId);
    if (step.kind === 'dispatch') await this.#dispatch(ref, step);
    if (step.kind === 'deliver_cancel') {
      const { dispatch_id, mesh_id } = step;
      const holder = this.#context.processOf(mesh_id)?.node.runner;
      await holder?.cancel({ ...ref, dispatch_id }, 'The message was canceled.');
    }
  }

  /** The timers of those that wait for an agent, the oldest first. @returns whether one found an agent */
  async #lookForAgents(): Promise<boolean> {
    for (const messageId of [...this.#waiting].sort()) {
      await this.look(messageId);
      if (!this.#waiting.has(messageId)) return true;
    }
    return false;
  }

  async #dispatch(ref: MessageRef, step: DispatchStep): Promise<void> {
    const { inFlight, faults } = this.#context;
    if (inFlight.isSupervised(step.dispatch_id)) return;
    await faults.at('scheduled', ref.message_id);
    const done = this.#runStep({ ...ref, dispatch_id: step.dispatch_id }, step);
    inFlight.add(step.dispatch_id, 'workflow', done);
  }

  /** As in the workflow: a node that gives no report is gone or never took it, and a final end needs no further look. */
  async #runStep(ref: DispatchRef, step: DispatchStep): Promise<void> {
    const { signal } = this.#context;
    try {
      const process = this.#context.processOf(step.mesh_id);
      if (!process) throw new DeadProcess('nobody serves the queue of that node');
      const routed = { ...ref, instance_id: step.instance_id };
      const running = process.node.run(routed, signal);
      const end = await Promise.race([running, process.life.death]);
      if (end.kind === 'not_sent') await this.#recorded(ref, this.#record.release(ref, end.reason));
      else if (end.final === undefined) this.wake(ref.message_id);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof DeadProcess)) throw error;
      await this.#recorded(ref, this.#record.failAsLost(ref, 'AGENT_DISCONNECTED'));
    }
  }

  /** Resolves when that is on the record and the message's workflow is to look again. */
  async #recorded({ message_id }: DispatchRef, write: Promise<void>): Promise<void> {
    const recording = write.then(() => this.wake(message_id));
    this.#recording.add(recording);
    try {
      await recording;
    } finally {
      this.#recording.delete(recording);
    }
  }
}
