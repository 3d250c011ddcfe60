import type { DispatchRef } from '../../messages/dispatch/dispatch-ref.js';
import type { AgentResult, Dispatches, Produced } from '../../messages/dispatch/dispatches.js';
import type { LocalEnd } from '../../messages/dispatch/local-mesh.js';
import type { MessageEnd } from '../../messages/dispatch/transactions.js';
import type { ChunkBus } from '../../messages/stream/bus.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { errorFrame } from '../connection/frames.js';
import { persist } from '../persistence.js';
import type { AgentHealth } from './agent-health.js';

/** What an in-flight dispatch works with. */
export interface InflightDeps {
  dispatches: Dispatches;
  bus: ChunkBus;
  log: Logger;
  meshId: string;
  health: AgentHealth;
  /** Ends the trying to write, at the end of the process. */
  closing: AbortSignal;
  /** Sends to the agent's present socket; false when there is none. */
  send(agentKey: string, frame: string): boolean;
  /** Resolves when the agent's epoch is not being raised: from then on `epoch` is the valid one. */
  fenced(agentKey: string): Promise<void>;
}

/**
 * How a dispatch is to end. `lost`: the agent is gone. `elsewhere`: the database says that it is closed already. `sign`: what a failure
 * says of the agent: that it lives and reported it, or that it failed itself; absent where it says neither.
 */
export type Ending =
  | { kind: 'outcome'; outcome: AgentResult }
  | { kind: 'failure'; error: { code: string; message: string }; sign?: 'answered' | 'failed' }
  | { kind: 'lost' }
  | { kind: 'elsewhere' };

/** The connection that a dispatch goes out by. */
export interface DispatchConnection {
  agentKey: string;
  instance_id: string;
  epoch: number;
}

/** The dispatch that ends. */
export interface EndingDispatch {
  readonly ref: DispatchRef;
  readonly frameId: string;
  readonly agentKey: string;
  readonly instanceId: string;
  /** Read anew for every try: a resume may raise it meanwhile. */
  readonly epoch: number;
  /** Whether a socket took it. */
  readonly reachedSocket: boolean;
  /** What earlier dispatches of the message brought. */
  readonly produced: Produced;
  /** W3C header of the caller's trace. */
  readonly traceparent: string | undefined;
}

/** Runs a write for as long as the database is away. */
export function persistIn<T>(around: InflightDeps, work: () => Promise<T>): Promise<T> {
  return persist(work, around.log, around.closing);
}

/** What became of an ending. */
export interface WrittenEnding extends LocalEnd {
  /** False when it could not be written. */
  written: boolean;
}

const ended = (end: MessageEnd | null): LocalEnd => ({ end, needsWorkflow: false });
const NEEDS_WORKFLOW: LocalEnd = { end: null, needsWorkflow: true };

/** Brings the end of a dispatch to the database, however long that takes. Never rejects. */
export async function writeEnding(
  around: InflightDeps,
  dispatch: EndingDispatch,
  ending: Ending,
): Promise<WrittenEnding> {
  const { ref } = dispatch;
  await countSign(around.health, dispatch, ending);
  try {
    return { ...(await write(around, dispatch, ending)), written: true };
  } catch (error) {
    around.log.error(
      { err: errorMessage(error), dispatch_id: ref.dispatch_id },
      'end of a dispatch could not be written',
    );
    return failInternally(around, ref);
  }
}

/** Before the end is written: who sees the end and sends anew finds the agent's health counted. */
async function countSign(health: AgentHealth, dispatch: EndingDispatch, ending: Ending): Promise<void> {
  const agent = { tenant_id: dispatch.ref.tenant_id, instance_id: dispatch.instanceId };
  const isLost = ending.kind === 'lost' && dispatch.reachedSocket;
  const sign = ending.kind === 'failure' ? ending.sign : undefined;
  if (isLost || sign === 'failed') await health.failed(agent, dispatch.epoch);
  if (ending.kind === 'outcome' || sign === 'answered') await health.answered(agent);
}

async function write(around: InflightDeps, dispatch: EndingDispatch, ending: Ending): Promise<LocalEnd> {
  const { dispatches } = around;
  switch (ending.kind) {
    case 'outcome':
      return accept(around, dispatch, ending.outcome);
    case 'failure':
      return ended((await persistIn(around, () => dispatches.fail(dispatch.ref, ending.error))).end);
    case 'lost':
      return persistIn(around, () => writeLoss(dispatches, dispatch));
    case 'elsewhere':
      return ended(null);
    default:
      return ending satisfies never;
  }
}

/** Tells the agent that the dispatch has ended otherwise: CANCELED, or DISPATCH_ALREADY_TERMINAL. */
export function tellClosed(around: InflightDeps, dispatch: EndingDispatch, state: string, reason = ''): void {
  const { agentKey, frameId, traceparent } = dispatch;
  const frame =
    state === 'canceled'
      ? errorFrame('CANCELED', reason || 'The message was canceled.', frameId, traceparent)
      : errorFrame('DISPATCH_ALREADY_TERMINAL', `The dispatch has ended: ${state}.`, frameId, traceparent);
  around.send(agentKey, frame);
}

/** A dispatch that no socket took can be routed again. */
async function writeLoss(dispatches: Dispatches, dispatch: EndingDispatch): Promise<LocalEnd> {
  if (dispatch.reachedSocket) return ended(await dispatches.failAsLost(dispatch.ref, 'AGENT_DISCONNECTED'));
  await dispatches.release(dispatch.ref, 'AGENT_DISCONNECTED', { nothingSent: true });
  return NEEDS_WORKFLOW;
}

async function accept(around: InflightDeps, dispatch: EndingDispatch, outcome: AgentResult): Promise<LocalEnd> {
  const { dispatches, bus } = around;
  const { ref } = dispatch;
  const answered = { ...ref, produced: dispatch.produced };
  for (;;) {
    const { epoch } = dispatch;
    const closed = await persistIn(around, () => dispatches.accept(answered, epoch, outcome));
    if (closed.accepted) return closed.end ? ended(closed.end) : NEEDS_WORKFLOW;
    await around.fenced(dispatch.agentKey);
    if (dispatch.epoch === epoch) break; // not a resume that raced with the result
  }
  const [closed] = await persistIn(around, () => dispatches.closedAmong([ref]));
  if (!closed) {
    // A newer connection owns the agent, and has or will have taken this for lost.
    return ended(await persistIn(around, () => dispatches.failAsLost(ref, 'AGENT_DISCONNECTED')));
  }
  tellClosed(around, dispatch, closed.state);
  // By this very result, where only the database's answer was lost: then nobody has been told.
  bus.publish(ref.tenant_id, ref.message_id, { kind: 'changed' });
  return ended(null);
}

async function failInternally(around: InflightDeps, ref: DispatchRef): Promise<WrittenEnding> {
  const error = { code: 'INTERNAL', message: 'The result could not be stored.' };
  try {
    const { end } = await persistIn(around, () => around.dispatches.fail(ref, error));
    return { ...ended(end), written: true };
  } catch (failure) {
    around.log.error(
      { err: errorMessage(failure), dispatch_id: ref.dispatch_id },
      'dispatch is left to its supervisor',
    );
    return { ...NEEDS_WORKFLOW, written: false };
  }
}
