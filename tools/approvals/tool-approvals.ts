import { randomUUID } from 'node:crypto';
import type { AgentRef } from '../../agents/agent-row.js';
import type { Executor } from '../../contracts/api/messages.js';
import type { ToolCallPayload, ToolResult } from '../../contracts/api/tools.js';
import { type Db, persist } from '../../db/pool.js';
import type { MessageCore } from '../../messages/core.js';
import type { DispatchRef } from '../../messages/dispatch/dispatches.js';
import type { Verdict } from '../../policy/policy-request.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { type CallCancellation, type CallParent, type ToolRequest, WITHDRAWN } from '../call-context.js';
import { denialOf, policyRequestOf } from '../tool-policy.js';
import { type Outcome, unsent } from '../tool-result.js';
import type { DecisionWatch } from './decision-watch.js';
import {
  type GrantAnswer,
  holdToolCall,
  noteToolAnswer,
  recordCallOutcome,
  returnToolGrant,
  type StoredCall,
  type TakenOverCall,
  takeOverToolCalls,
  useToolGrant,
  withdrawToolCall,
} from './tool-grants.js';

export interface ToolApprovalsOptions {
  db: Db;
  log: Logger;
  /** This process. */
  meshId: string;
  watch: Pick<DecisionWatch, 'untilOver'>;
  bus: Pick<MessageCore['bus'], 'publish'>;
  local: Pick<MessageCore['local'], 'noteToolRequest'>;
  workflowStarter: Pick<MessageCore['workflowStarter'], 'message'>;
  /** An agent may have got room. Never throws. */
  fill(agent: AgentRef): void;
}

/** The use of a grant by a call, with the arguments that were approved. */
export interface GrantUse {
  granted: Record<string, unknown>;
  requestId: string;
  /** A UUID. */
  useId: string;
}

/** A call that was approved, or the outcome of one that was not. */
export type Approval = GrantUse | { refused: Outcome };

/** A call that a human is to be asked about. */
interface AskedCall {
  request: ToolRequest;
  /** Who would make the call; the target of the request is limited to it. */
  executor: Executor;
  verdict: Extract<Verdict, { decision: 'require_approval' }>;
}

/**
 * Tool calls that a human has to approve are held: here, and on the record, where any later dispatch finds the decision (docs/domains.md#a-tool-call). `hold`
 * holds a call and waits until it may use its grant; the caller then makes the call, and either `settle`s its outcome or returns the grant (`returnGrant`).
 * When another process takes the dispatch over, `takeOver` finds the calls that it held, and `resume` waits on for each.
 */
export class ToolApprovals {
  readonly #options: ToolApprovalsOptions;

  constructor(options: ToolApprovalsOptions) {
    this.#options = options;
  }

  /**
   * Asks a human about a call, or finds what was decided about it, and waits for the decision. The call's deadline stands still meanwhile.
   * @throws PlatformError when the record cannot be written: nobody was asked
   */
  async hold({ request, executor, verdict }: AskedCall, cancellation: CallCancellation): Promise<Approval> {
    const { db, meshId } = this.#options;
    const { payload, parent } = request;
    if (!parent?.dispatch)
      return { refused: { sent: false, result: denialOf(verdict.by, cannotWait(verdict.by.reason)) } };
    using held = new HeldCall(request, parent, parent.dispatch, cancellation);
    const { dispatch, useId, until } = held;
    const { tool, target, arguments: given } = payload;
    const policyRequest = policyRequestOf(request);
    const stored = storedCallOf(request, cancellation);
    const call = { dispatch, meshId, useId, tool, arguments: given, executor, target, verdict, policyRequest, stored };
    for (;;) {
      const answer = await holdToolCall(db, call);
      if (answer.asked || answer.kind === 'failed') this.#announce(dispatch, answer);
      if (answer.request_id === null || (answer.kind !== 'waits' && answer.kind !== 'occupied'))
        return approvalOf(answer, useId);
      held.begin();
      if (answer.kind === 'waits') return await this.#awaitDecision(held, answer.request_id);
      await this.#options.watch.untilOver(dispatch, answer.request_id, until);
      if (until.aborted) return { refused: withoutDecision(cancellation) };
    }
  }

  /** The calls that wait in these dispatches, for this process to answer from now on. Never rejects: what is not found is asked for again. */
  async takeOver(tenantId: string, dispatchIds: string[]): Promise<TakenOverCall[]> {
    const { db, meshId } = this.#options;
    const take = () => takeOverToolCalls(db, tenantId, dispatchIds, meshId);
    const about = { dispatch_ids: dispatchIds };
    return (await this.#recorded(take, 'error', about, 'waiting tool calls could not be taken over')) ?? [];
  }

  /**
   * The result of a held call went out to its agent. Never rejects: if this cannot be written, a process that takes the dispatch over sends the result once more.
   */
  async noteResultSent(tenantId: string, requestId: string): Promise<void> {
    const note = () => noteToolAnswer(this.#options.db, tenantId, requestId);
    const about = { input_request_id: requestId };
    await this.#recorded(note, 'warn', about, 'the answer to a tool call could not be noted');
  }

  /** Waits for the decision on a call that another process held. */
  async resume(request: ToolRequest, requestId: string, cancellation: CallCancellation): Promise<Approval> {
    const { parent } = request;
    if (!parent?.dispatch) return { refused: unsent('CANCELED', 'The dispatch has ended.') };
    using held = new HeldCall(request, parent, parent.dispatch, cancellation);
    held.begin();
    return await this.#awaitDecision(held, requestId);
  }

  /**
   * Returns a grant whose call reached no agent or tool, so that another call may use it. Never rejects: if this fails, the grant is lost, and
   * a human is asked again.
   */
  async returnGrant(tenantId: string, { requestId, useId }: GrantUse): Promise<void> {
    const release = () => returnToolGrant(this.#options.db, tenantId, requestId, useId);
    const about = { input_request_id: requestId };
    await this.#recorded(release, 'error', about, 'the grant of a tool call could not be returned');
  }

  /** Notes the outcome of a call that used a grant. Never rejects: if this fails, the message ends with the outcome recorded as unknown. */
  async settle(tenantId: string, { requestId }: GrantUse, result: ToolResult): Promise<void> {
    const note = () => recordCallOutcome(this.#options.db, tenantId, requestId, result.ok ? null : result.error.code);
    const about = { input_request_id: requestId };
    await this.#recorded(note, 'warn', about, 'the outcome of a tool call could not be noted');
  }

  /** Repeats a write while the database is away. @returns undefined if the record refuses it, which is logged */
  async #recorded<T>(
    write: () => Promise<T>,
    level: 'warn' | 'error',
    about: object,
    failure: string,
  ): Promise<T | undefined> {
    const { log } = this.#options;
    try {
      return await persist(write, log);
    } catch (error) {
      log[level]({ err: errorMessage(error), ...about }, failure);
      return undefined;
    }
  }

  async #awaitDecision(held: HeldCall, requestId: string): Promise<Approval> {
    const { request, dispatch, cancellation, useId, until } = held;
    const { db, log, watch } = this.#options;
    request.whileHeld?.waitsFor(requestId);
    for (;;) {
      await watch.untilOver(dispatch, requestId, until);
      if (request.signal.aborted && request.signal.reason === WITHDRAWN) await this.#withdraw(dispatch, requestId);
      const answer = await persist(() => useToolGrant(db, dispatch, requestId, !until.aborted, useId), log);
      if (until.aborted && NO_DECISION.includes(answer.kind)) return { refused: withoutDecision(cancellation) };
      if (answer.kind !== 'waits') return approvalOf(answer, useId);
    }
  }

  async #withdraw(dispatch: HeldCall['dispatch'], requestId: string): Promise<void> {
    const { db, log } = this.#options;
    if (await persist(() => withdrawToolCall(db, dispatch, requestId), log))
      this.#announce(dispatch, { freed_id: null });
  }

  /** After the commit: streams read the message again, and its workflow looks at it. */
  #announce(message: HeldCall['dispatch'], { freed_id }: Pick<GrantAnswer, 'freed_id'>): void {
    const { bus, local, workflowStarter, fill } = this.#options;
    const { tenant_id, message_id, session_id } = message;
    local.noteToolRequest(message_id);
    bus.publish(tenant_id, message_id, { kind: 'changed' });
    workflowStarter.message({ tenant_id, message_id, session_id });
    if (freed_id !== null) fill({ tenant_id, instance_id: freed_id });
  }
}

/** A call whose message waits, or is about to wait, for a human. Its deadline stands still until it is disposed of. */
class HeldCall implements Disposable {
  readonly request: ToolRequest;
  readonly cancellation: CallCancellation;
  readonly dispatch: DispatchRef & { session_id: string };
  /** A UUID of this call alone, by which the record lets it pass once, however often it asks. */
  readonly useId = randomUUID();
  /** Aborted when the call is canceled, or its caller is to ask again. */
  readonly until: AbortSignal;
  #hasBegun = false;

  constructor(
    request: ToolRequest,
    { session_id = '' }: Pick<CallParent, 'session_id'>,
    dispatch: DispatchRef,
    cancellation: CallCancellation,
  ) {
    const { asksAgainAfterMs } = request;
    this.request = request;
    this.cancellation = cancellation;
    this.dispatch = { ...dispatch, session_id };
    const again = asksAgainAfterMs === undefined ? [] : [AbortSignal.timeout(asksAgainAfterMs)];
    this.until = AbortSignal.any([cancellation.signal, ...again]);
    cancellation.pause();
  }

  /** Tells the caller, once, that its call waits: a human is asked about it, or about another call first. */
  begin(): void {
    if (!this.#hasBegun) this.request.whileHeld?.begin();
    this.#hasBegun = true;
  }

  [Symbol.dispose](): void {
    if (this.#hasBegun) this.request.whileHeld?.end();
    this.cancellation.resume();
  }
}

function cannotWait(reason: string): string {
  return `This call needs approval (${reason}), and only a call that names the dispatch of a message can wait for it.`;
}

function storedCallOf({ payload, traceparent, whileHeld }: ToolRequest, { leftMs }: CallCancellation): StoredCall {
  const { arguments: _approvedApart, ...rest } = payload;
  return {
    payload: rest satisfies Omit<ToolCallPayload, 'arguments'>,
    ...(whileHeld?.frameId !== undefined && { frame_id: whileHeld.frameId }),
    ...(traceparent !== undefined && { traceparent }),
    deadline_ms: Math.round(leftMs),
  };
}

/** Answers without a decision. A caller that has stopped waiting gets the reason why it stopped instead. */
const NO_DECISION: readonly GrantAnswer['kind'][] = ['waits', 'used_by_other', 'closed'];

/** The grant or the refusal that follows from the answer of the record. */
function approvalOf({ kind, request_id, arguments: approved, comment }: GrantAnswer, useId: string): Approval {
  const said = comment === null ? '' : `: ${comment}`;
  switch (kind) {
    case 'granted':
      return { granted: approved ?? {}, requestId: request_id ?? '', useId };
    case 'rejected':
      return { refused: unsent('APPROVAL_REJECTED', `A human has rejected this call${said}`.slice(0, 4_096)) };
    case 'expired':
      return { refused: unsent('APPROVAL_EXPIRED', 'Nobody approved this call in time.') };
    case 'used':
      return { refused: unsent('AGENT_DISCONNECTED', 'The approved call was made before; its tool may have run.') };
    case 'failed':
      return { refused: unsent('POLICY_DENIED', 'Approval was asked for too often; the message has failed.') };
    case 'withdrawn':
      return { refused: unsent('CANCELED', 'The request for approval of this call was withdrawn.') };
    case 'used_by_other':
      return { refused: unsent('CANCELED', 'Another call has used the approval that this call waited for.') };
    case 'waits': // never: the caller has waited
    case 'occupied': // without a request only: the dispatch is ending
    case 'closed':
      return { refused: unsent('CANCELED', 'The dispatch that this call is part of has ended.') };
    default:
      return kind satisfies never;
  }
}

/** The outcome of a call that nobody has decided about while its caller waited. */
function withoutDecision(cancellation: CallCancellation): Outcome {
  return cancellation.signal.aborted
    ? cancellation.unsent()
    : unsent('APPROVAL_PENDING', 'The call waits for approval. Ask again with the same idempotency_key.', true);
}
