import type { Artifact } from '../../contracts/a2a/parts.js';
import { outputContent, textsOf } from '../../policy/guards/content.js';
import type { GuardFinding, GuardSettings, StreamInspector, StreamStep } from '../../policy/guards/guarded-content.js';
import { findingEvents } from '../../policy/verdict.js';
import { errorMessage } from '../../runtime/errors.js';
import type { AnswerOrFailure, DispatchRef, OpenDispatch } from '../dispatch/dispatches.js';
import type { BusEvent, ChunkBus } from '../stream/bus.js';
import type { RunningDispatch } from './running-dispatches.js';
import type { SenderOptions } from './sender-options.js';
import type { TransportResult } from './transport.js';

type ArtifactEvent = Extract<BusEvent, { kind: 'artifact' }>;

/** How the events of guards name what they inspect here. */
const ACTION = { action: 'output', tool: null };

/** The output of one dispatch, which guards inspect before streams and the record get it. */
export class GuardedOutput {
  readonly #running: RunningDispatch;
  readonly #publish: (event: BusEvent) => void;
  #guards: GuardSettings | null | undefined;
  /** Events that came before the guards were known. */
  #early: BusEvent[] = [];
  /** By artifact; null where no guard looks at streams. */
  readonly #streams = new Map<string, StreamInspector<ArtifactEvent> | null>();
  readonly #allowed: GuardFinding[] = [];
  #denial: GuardFinding | undefined;
  /** A guard wants a human to approve the answer. From here on nothing of it is published. */
  #hold: GuardFinding | undefined;

  constructor(running: RunningDispatch, publish: (event: BusEvent) => void) {
    this.#running = running;
    this.#publish = publish;
  }

  get ref(): DispatchRef {
    return this.#running.ref;
  }

  /** Whether a guard has stopped it. */
  get isDenied(): boolean {
    return this.#denial !== undefined;
  }

  /** Sets the tenant's guards, and inspects the events that came before. Only the first call counts. */
  use(guards: GuardSettings | null): void {
    if (this.#guards !== undefined) return;
    this.#guards = guards;
    for (const event of this.#early.splice(0)) this.publish(event);
  }

  /** Publishes an event as soon as it is certain that guards find nothing in it. */
  publish(event: BusEvent): void {
    if (this.#denial || this.#hold) return;
    if (this.#guards === undefined) this.#early.push(event);
    else if (event.kind === 'artifact') this.#artifact(event);
    else if (event.kind !== 'status_text' || !this.#stopsAt({ status_text: event.text })) this.#publish(event);
  }

  /**
   * Looks at the whole answer, and publishes what was held back of it.
   * @param guards as they are now
   * @returns the result to record
   */
  finish(result: TransportResult, guards: GuardSettings | null): TransportResult {
    this.use(guards);
    if (this.#denial) return this.#denied(this.#denial, result);
    if (!isAnswer(result)) return result;
    const { artifacts, status_message, input_request, error } = result;
    // No human is asked about a failure, which says enough without its text, or about a plan, which others could read before the answer is delivered.
    const canWait = result.state !== 'failed' && result.plan_proposal === undefined;
    if (guards)
      this.#take(guards.inspect(outputContent({ artifacts, status_message, input_request, error }), { canWait }));
    for (const stream of this.#streams.values()) this.#release(stream?.end());
    // A failure without output stays what it was, because the work of a lost agent may be repeated; nothing that was streamed is kept.
    const keepsOutput = Boolean(result.artifacts?.length) || result.plan_proposal !== undefined;
    const denial = this.#denial ?? (!canWait && keepsOutput ? this.#hold : undefined);
    if (denial) return this.#denied(denial, result);
    const decisions = findingEvents(this.#allowed, ACTION);
    return {
      ...result,
      ...(canWait && this.#hold && { held: this.#hold }),
      ...(decisions.length > 0 && { decisions }),
    };
  }

  #artifact(event: ArtifactEvent): void {
    // The whole answer follows at the end.
    if (this.#running.isContinued) return;
    const { artifact, append } = event;
    let stream = append ? this.#streams.get(artifact.artifactId) : undefined;
    if (stream === undefined) {
      this.#release(this.#streams.get(artifact.artifactId)?.end());
      stream = this.#guards?.streamInspector<ArtifactEvent>(`artifacts[${this.#streams.size}]`) ?? null;
      this.#streams.set(artifact.artifactId, stream);
    }
    if (stream) this.#release(stream.push(event, ...textsIn(artifact)));
    else if (!this.#denial && !this.#hold) this.#publish(event);
  }

  #release(step: StreamStep<ArtifactEvent> | undefined): void {
    if (!step || this.#denial || this.#hold) return;
    this.#take(step.findings);
    for (const event of step.released) this.#publish(event);
  }

  #stopsAt(content: Record<string, unknown>): boolean {
    if (this.#guards?.inspects('output')) this.#take(this.#guards.inspect(outputContent(content)));
    return this.#denial !== undefined || this.#hold !== undefined;
  }

  #take(findings: readonly GuardFinding[]): void {
    const denial = findings.find(({ decision }) => decision === 'deny');
    this.#allowed.push(...findings.filter(({ decision }) => decision === 'allow'));
    this.#hold ??= findings.find(({ decision }) => decision === 'require_approval');
    if (!denial || this.#denial) return;
    this.#denial = denial;
    this.#running.close('denied', denial.reason);
  }

  /** The failure in place of a denied answer. It keeps the usage, and nothing of the answer. */
  #denied(denial: GuardFinding, result: TransportResult): AnswerOrFailure {
    const { usage, health } = isAnswer(result) ? result : {};
    return {
      state: 'failed',
      artifacts: [],
      error: { code: 'GUARD_DENIED', message: `The agent's output was withheld: ${denial.reason}` },
      decisions: findingEvents([...this.#allowed, { ...denial, decision: 'deny' }], ACTION),
      ...(usage && { usage }),
      ...(health && { health }),
    };
  }
}

function isAnswer(result: TransportResult): result is AnswerOrFailure {
  return result.state === 'completed' || result.state === 'failed' || result.state === 'input-required';
}

/** The plain text of a chunk, which may continue the chunk before, and its other texts (metadata, data and file parts). */
function textsIn({ artifactId: _, parts, ...about }: Artifact): [text: string, whole: ReturnType<typeof textsOf>] {
  const text = parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');
  const beside = parts.map((part) => (part.kind === 'text' ? part.metadata : part));
  return [text, textsOf('', { ...about, parts: beside })];
}

/** All output of agents on this node goes through here before it is published. */
export class OutputGate implements Pick<ChunkBus, 'publish'> {
  readonly #options: Pick<SenderOptions, 'bus' | 'guards' | 'log'>;
  /** Outputs that are inspected, by message: a message has one dispatch at a time. */
  readonly #open = new Map<string, GuardedOutput>();

  constructor(options: Pick<SenderOptions, 'bus' | 'guards' | 'log'>) {
    this.#options = options;
  }

  publish(tenantId: string, messageId: string, event: BusEvent): void {
    const output = this.#open.get(messageId);
    if (output) output.publish(event);
    else this.#options.bus.publish(tenantId, messageId, event);
  }

  /** Begins to inspect the output of a dispatch; undefined where no guard of its tenant looks at output. */
  begin(running: RunningDispatch, { tenant_id, message_id }: OpenDispatch): GuardedOutput | undefined {
    const guards = this.#options.guards.guardsOf(tenant_id);
    if (!(guards instanceof Promise) && !guards?.inspects('output')) return undefined;
    const output = new GuardedOutput(running, (event) => this.#options.bus.publish(tenant_id, message_id, event));
    this.#open.set(message_id, output);
    if (guards instanceof Promise)
      guards.then(
        (found) => output.use(found),
        () => undefined, // `end` reads the guards again
      );
    else output.use(guards);
    return output;
  }

  /**
   * To be called when the agent has answered, or the dispatch has ended otherwise. No answer may be recorded before guards have seen it, so this waits until
   * they can be read.
   * @param output what `begin` gave. Undefined: no guard looked at output then; if one does now, it inspects the whole answer
   * @param persist repeats work until the database is there
   * @returns the result to record
   */
  async end(
    output: GuardedOutput | undefined,
    running: RunningDispatch,
    result: TransportResult,
    persist: Persist,
  ): Promise<TransportResult> {
    const { tenant_id, message_id, dispatch_id } = running.ref;
    try {
      if (!isAnswer(result) && !output?.isDenied) return result;
      const guards = await persist(async () => this.#options.guards.guardsOf(tenant_id));
      if (output) return output.finish(result, guards);
      return guards?.inspects('output') ? new GuardedOutput(running, () => undefined).finish(result, guards) : result;
    } catch (error) {
      const ids = { tenant_id, message_id, dispatch_id };
      this.#options.log.error({ err: errorMessage(error), ...ids }, 'output of an agent could not be inspected');
      const message = 'The output could not be inspected.';
      return { state: 'failed', artifacts: [], error: { code: 'INTERNAL', message } };
    } finally {
      if (output && this.#open.get(message_id) === output) this.#open.delete(message_id);
    }
  }
}

type Persist = <T>(work: () => Promise<T>) => Promise<T>;
