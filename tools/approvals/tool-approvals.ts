import { randomUUID } from 'node:crypto';
import type { AgentRef } from '../../agents/agent-row.js';
import type { Executor } from '../../contracts/api/messages.js';
import type { ToolCallPayload, ToolResult } from '../../contracts/api/tools.js';
import type { Db } from '../../db/pool.js';
import type { MessageCore } from '../../messages/core.js';
import type { DispatchRef } from '../../messages/dispatch/dispatches.js';
import { persist } from '../../messages/runner/persist.js';
import type { Verdict } from '../../policy/policy-request.js';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import { type CallCancellation, type ToolRequest, WITHDRAWN } from '../call-context.js';
import { denialOf, policyRequestOf } from '../tool-policy.js';
import { type Outcome, unsent } from '../tool-result.js';
import type { DecisionWatch } from './decision-watch.js';
import {
  type HeldCall,
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
  nodeId: string;
  watch: Pick<DecisionWatch, 'over'>;
  bus: Pick<MessageCore['bus'], 'publish'>;
  ends: Pick<MessageCore['ends'], 'noteRest'>;
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
  /** The only one that makes it: the target of the request says so too. */
  executor: Executor;
  verdict: Extract<Verdict, { decision: 'require_approval' }>;
}

/** A call whose message waits, or is about to wait, for a human. */
interface WaitingCall {
  request: ToolRequest;
  dispatch: DispatchRef & { session_id: string };
  cancellation: CallCancellation;
  /** Of this call alone: whatever is asked twice of the record, the call passes once. */
  useId: string;
}

/** Tool calls that a human has to approve: they wait here, and on the record, where any later dispatch finds the decision. */
export class ToolApprovals {
  readonly #options: ToolApprovalsOptions;

  constructor(options: ToolApprovalsOptions) {
    this.#options = options;
  }

  /**
   * Asks a human about a call, or finds what was decided about it, and waits for the decision. The call's deadline stands still meanwhile.
   * @throws PlatformError when the record cannot be written: nobody was asked
   */
  async approve({ request, executor, verdict }: AskedCall, cancellation: CallCancellation): Promise<Approval> {
    const { db, nodeId } = this.#options;
    const { payload, parent } = request;
    if (!parent?.dispatch)
      return { refused: { sent: false, result: denialOf(verdict.by, cannotWait(verdict.by.reason)) } };
    const dispatch = { ...parent.dispatch, session_id: parent.session_id ?? '' };
    const useId = randomUUID();
    const waiting = { request, dispatch, cancellation, useId };
    const { tool, target, arguments: given } = payload;
    const policyRequest = policyRequestOf(request);
    const holding = { dispatch, nodeId, useId, tool, arguments: given, executor, target, verdict, policyRequest };
    return this.#whileHeld(waiting, async (until, begin) => {
      for (;;) {
        const held = await holdToolCall(db, { ...holding, stored: storedCallOf(request, cancellation) });
        if (held.asked || held.verdict === 'failed') this.#announce(dispatch, held);
        if (held.request_id === null || (held.verdict !== 'waits' && held.verdict !== 'occupied'))
          return settled(held, useId);
        begin();
        if (held.verdict === 'waits') return this.#decided(waiting, held.request_id, until);
        await this.#options.watch.over(dispatch, held.request_id, until);
        if (until.aborted) return { refused: stopped(cancellation) };
      }
    });
  }

  /** The calls that wait in these dispatches, for this process to answer from now on. Never rejects: what is not found is asked for again. */
  async takeOver(tenantId: string, dispatchIds: string[]): Promise<TakenOverCall[]> {
    const { db, nodeId } = this.#options;
    const take = () => takeOverToolCalls(db, tenantId, dispatchIds, nodeId);
    const about = { dispatch_ids: dispatchIds };
    return (await this.#recorded(take, 'error', about, 'waiting tool calls could not be taken over')) ?? [];
  }

  /** The result of a call that has waited went out to its agent. Never rejects: a process that takes over answers it once more. */
  async answered(tenantId: string, requestId: string): Promise<void> {
    const note = () => noteToolAnswer(this.#options.db, tenantId, requestId);
    const about = { input_request_id: requestId };
    await this.#recorded(note, 'warn', about, 'the answer to a tool call could not be noted');
  }

  /** Waits for the decision on a call that another process held. */
  resume(request: ToolRequest, requestId: string, cancellation: CallCancellation): Promise<Approval> {
    const { parent } = request;
    if (!parent?.dispatch) return Promise.resolve({ refused: unsent('CANCELED', 'The dispatch has ended.') });
    const dispatch = { ...parent.dispatch, session_id: parent.session_id ?? '' };
    const waiting = { request, dispatch, cancellation, useId: randomUUID() };
    return this.#whileHeld(waiting, (until, begin) => {
      begin();
      return this.#decided(waiting, requestId, until);
    });
  }

  /** The call that a grant let pass reached no agent or tool: another may. Never rejects: the grant is then lost, and a human is asked again. */
  async returnGrant(tenantId: string, { requestId, useId }: GrantUse): Promise<void> {
    const release = () => returnToolGrant(this.#options.db, tenantId, requestId, useId);
    const about = { input_request_id: requestId };
    await this.#recorded(release, 'error', about, 'the grant of a tool call could not be returned');
  }

  /** Notes what came of the call that a grant let pass. Never rejects: the end of the message then says that nobody knows. */
  async settle(tenantId: string, { requestId }: GrantUse, result: ToolResult): Promise<void> {
    const note = () => recordCallOutcome(this.#options.db, tenantId, requestId, result.ok ? null : result.error.code);
    const about = { input_request_id: requestId };
    await this.#recorded(note, 'warn', about, 'the outcome of a tool call could not be noted');
  }

  /** Writes for as long as the database is away. @returns undefined, which is logged, where the record refuses it */
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

  /** Stops the call's clock for as long as `work` takes. `begin` tells the caller, once, that a human is asked. */
  async #whileHeld(
    { request, cancellation }: WaitingCall,
    work: (until: AbortSignal, begin: () => void) => Promise<Approval>,
  ): Promise<Approval> {
    const { held, asksAgainAfterMs } = request;
    const restart = cancellation.pause();
    let begun = false;
    const begin = (): void => {
      if (!begun) held?.begin();
      begun = true;
    };
    const again = asksAgainAfterMs === undefined ? [] : [AbortSignal.timeout(asksAgainAfterMs)];
    try {
      return await work(AbortSignal.any([cancellation.signal, ...again]), begin);
    } finally {
      if (begun) held?.end();
      restart();
    }
  }

  async #decided(
    { request, dispatch, cancellation, useId }: WaitingCall,
    requestId: string,
    until: AbortSignal,
  ): Promise<Approval> {
    const { db, log, watch } = this.#options;
    request.held?.waitsFor(requestId);
    for (;;) {
      await watch.over(dispatch, requestId, until);
      if (request.signal.aborted && request.signal.reason === WITHDRAWN) await this.#withdraw(dispatch, requestId);
      const held = await persist(() => useToolGrant(db, dispatch, requestId, !until.aborted, useId), log);
      if (held.verdict !== 'waits' && !(until.aborted && held.verdict === 'closed')) return settled(held, useId);
      if (until.aborted) return { refused: stopped(cancellation) };
    }
  }

  async #withdraw(dispatch: WaitingCall['dispatch'], requestId: string): Promise<void> {
    const { db, log } = this.#options;
    if (await persist(() => withdrawToolCall(db, dispatch, requestId), log))
      this.#announce(dispatch, { freed_id: null });
  }

  /** After the commit: streams read the message again, and its workflow looks at it. */
  #announce(message: WaitingCall['dispatch'], { freed_id }: Pick<HeldCall, 'freed_id'>): void {
    const { bus, ends, workflowStarter, fill } = this.#options;
    const { tenant_id, message_id, session_id } = message;
    ends.noteRest(message_id);
    bus.publish(tenant_id, message_id, { kind: 'changed' });
    workflowStarter.message({ tenant_id, message_id, session_id });
    if (freed_id !== null) fill({ tenant_id, instance_id: freed_id });
  }
}

function cannotWait(reason: string): string {
  return `This call needs approval (${reason}), and only a call that names the dispatch of a message can wait for it.`;
}

function storedCallOf({ payload, traceparent, held }: ToolRequest, { endsAtMs }: CallCancellation): StoredCall {
  const { arguments: _approvedApart, ...rest } = payload;
  return {
    payload: rest satisfies Omit<ToolCallPayload, 'arguments'>,
    ...(held?.frameId !== undefined && { frame_id: held.frameId }),
    ...(traceparent !== undefined && { traceparent }),
    deadline_ms: Math.max(1, Math.round(endsAtMs - performance.now())),
  };
}

/** What a decision, or the end of the message, makes of the call. */
function settled({ verdict, request_id, arguments: approved, comment }: HeldCall, useId: string): Approval {
  if (verdict === 'granted') return { granted: approved ?? {}, requestId: request_id ?? '', useId };
  const said = comment === null ? '' : `: ${comment}`;
  switch (verdict) {
    case 'rejected':
      return { refused: unsent('APPROVAL_REJECTED', `A human has rejected this call${said}`.slice(0, 4_096)) };
    case 'expired':
      return { refused: unsent('APPROVAL_EXPIRED', 'Nobody approved this call in time.') };
    case 'used':
      return { refused: unsent('AGENT_DISCONNECTED', 'The approved call was made before; its tool may have run.') };
    case 'failed':
      return { refused: unsent('POLICY_DENIED', 'Approval was asked for too often; the message has failed.') };
    default:
      return { refused: unsent('CANCELED', 'The dispatch that this call is part of has ended.') };
  }
}

/** The outcome of a call that nobody has decided about while its caller waited. */
function stopped(cancellation: CallCancellation): Outcome {
  return cancellation.signal.aborted
    ? cancellation.unsent()
    : unsent('APPROVAL_PENDING', 'The call waits for approval. Ask again with the same idempotency_key.', true);
}
