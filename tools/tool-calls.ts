import type { Executor } from '../contracts/api/messages.js';
import type { ToolResult } from '../contracts/api/tools.js';
import { LIMITS } from '../contracts/limits.js';
import type { Verdict } from '../policy/policy-request.js';
import type { Logger } from '../runtime/logger.js';
import type { SpanRecorder } from '../telemetry/traces/span-recorder.js';
import type { ToolUsage } from '../usage/tool-usage.js';
import type { Approval, ToolApprovals } from './approvals/tool-approvals.js';
import { boundKeyOf } from './bound-key.js';
import { CallCancellation, type ToolRequest } from './call-context.js';
import { CallSlots } from './call-slots.js';
import { beginSpan, endSpan, type TracedRequest } from './call-span.js';
import { IdempotencyCache } from './idempotency-cache.js';
import type { PendingCalls } from './pending-calls.js';
import type { Deliver } from './tool-link.js';
import { denialOf, type ToolPolicies, ToolPolicy } from './tool-policy.js';
import { type Outcome, refusal, resultOfError, stillApproved, unsent } from './tool-result.js';
import { ToolRouter, type ToolRouterOptions } from './tool-router.js';

export interface ToolCallsOptions extends ToolRouterOptions {
  log: Logger;
  policies: ToolPolicies;
  approvals: ToolApprovals;
  usage: Pick<ToolUsage, 'count'>;
  spans: SpanRecorder;
}

/** Makes tool calls: takes a slot for each, lets the policies decide, waits for a human where they say so, and has it brought to an agent. */
export class ToolCalls {
  readonly #options: ToolCallsOptions;
  readonly #router: ToolRouter;
  readonly #policy: ToolPolicy;
  readonly #slots = new CallSlots({
    perCaller: LIMITS.toolCallsInFlightPerCaller,
    perNode: LIMITS.toolCallsInFlightPerNode,
  });
  /** Held calls are counted apart: they may wait for days. */
  readonly #heldSlots = new CallSlots({
    perCaller: LIMITS.heldToolCallsPerCaller,
    perNode: LIMITS.heldToolCallsPerNode,
  });
  readonly #idempotency = new IdempotencyCache();

  constructor(options: ToolCallsOptions) {
    this.#options = options;
    this.#router = new ToolRouter(options);
    this.#policy = new ToolPolicy(options.db, options.policies);
  }

  /** The calls of this node that agents are answering. */
  get pending(): PendingCalls {
    return this.#router.pending;
  }

  /** The approvals of calls that wait for a human. */
  get approvals(): Pick<ToolApprovals, 'noteResultSent' | 'takeOver'> {
    return this.#options.approvals;
  }

  /** Sets the handler of calls to agents whose sockets this node holds. */
  serve(deliver: Deliver): void {
    this.#options.link.serve({ call: deliver });
  }

  /** Makes a call. Never rejects. */
  async call(request: ToolRequest): Promise<ToolResult> {
    const bytes = Buffer.byteLength(JSON.stringify(request.payload.arguments));
    if (bytes > LIMITS.toolArgumentsBytes) {
      return refusal('PAYLOAD_TOO_LARGE', `arguments may have ${LIMITS.toolArgumentsBytes} bytes.`);
    }
    const leave = this.#slots.enter(request.caller, bytes);
    if (!leave) return refusal('RATE_LIMITED', 'Too many calls are in flight. Wait for a result.');
    using cancellation = new CallCancellation(deadlineOf(request), request.signal, request.parent);
    try {
      const { caller, payload } = request;
      return await this.#idempotency.once(caller.key, boundKeyOf(request), payload, cancellation, () =>
        this.#traced(request, (traced) => this.#run(traced, cancellation, leave)),
      );
    } catch (error) {
      this.#options.log.warn({ err: error, tenant_id: request.caller.tenant_id }, 'tool call failed in the platform');
      return resultOfError(error);
    } finally {
      leave();
    }
  }

  /** Continues a call that another process held: waits for the decision on its request and makes it. Never rejects. */
  async resume(request: ToolRequest, requestId: string): Promise<ToolResult> {
    using cancellation = new CallCancellation(deadlineOf(request), request.signal, request.parent);
    try {
      const { result } = await this.#traced(request, async (traced) => {
        const approval = await this.#options.approvals.resume(traced, requestId, cancellation);
        return this.#runApproved(traced, approval, cancellation);
      });
      return result;
    } catch (error) {
      this.#options.log.warn({ err: error, tenant_id: request.caller.tenant_id }, 'tool call failed in the platform');
      return resultOfError(error);
    }
  }

  /** Does a call within a span of its own. */
  async #traced(request: ToolRequest, work: (traced: TracedRequest) => Promise<Outcome>): Promise<Outcome> {
    const traced = beginSpan(request);
    try {
      const outcome = await work(traced);
      endSpan(this.#options.spans, traced, outcome);
      return outcome;
    } catch (error) {
      endSpan(this.#options.spans, traced, { sent: true, result: resultOfError(error) });
      throw error;
    }
  }

  /** @param leave gives up the call's slot */
  async #run(request: TracedRequest, cancellation: CallCancellation, leave: () => void): Promise<Outcome> {
    const decided = this.#policy.decide(request, this.#router.chainOf(request));
    const verdict = decided instanceof Promise ? await decided : decided;
    await this.#policy.record(request, verdict);
    switch (verdict.decision) {
      case 'allow':
        return this.#make(request, cancellation);
      case 'deny':
        return { sent: false, result: denialOf(verdict.by, verdict.by.reason, verdict.retryable) };
      case 'require_approval':
        return this.#makeApproved(request, verdict, cancellation, leave);
      default:
        return verdict satisfies never;
    }
  }

  /** Makes a call once a human has approved it. Nobody is asked about one that could not be made. */
  async #makeApproved(
    request: TracedRequest,
    verdict: Extract<Verdict, { decision: 'require_approval' }>,
    cancellation: CallCancellation,
    leave: () => void,
  ): Promise<Outcome> {
    const found = await this.#router.findExecutor(request);
    if ('impossible' in found) return found.impossible;
    const { executor } = found;
    const bound = boundTo(request, executor);
    const bytes = Buffer.byteLength(JSON.stringify(request.payload.arguments));
    const leaveHeld = this.#heldSlots.enter(request.caller, bytes);
    if (!leaveHeld) return unsent('RATE_LIMITED', 'Too many calls wait for approval.');
    leave();
    try {
      const approval = await this.#options.approvals.hold({ request: bound, executor, verdict }, cancellation);
      return await this.#runApproved(bound, approval, cancellation);
    } finally {
      leaveHeld();
    }
  }

  /** Makes a call with the arguments that were approved. Policies decide about it again, because they may have changed; only a denial counts. */
  async #runApproved(request: TracedRequest, approval: Approval, cancellation: CallCancellation): Promise<Outcome> {
    if ('refused' in approval) return approval.refused;
    const { tenant_id } = request.caller;
    const approved = { ...request, payload: { ...request.payload, arguments: approval.granted } };
    let isSpent = false;
    try {
      const verdict = await this.#policy.decideAgain(approved, this.#router.chainOf(approved));
      if (verdict.decision === 'deny') {
        await this.#policy.record(approved, verdict);
        const result = denialOf(verdict.by, verdict.by.reason, verdict.retryable);
        isSpent = !verdict.retryable;
        if (isSpent) await this.#options.approvals.settle(tenant_id, approval, result);
        return { sent: false, result };
      }
      const outcome = await this.#make(approved, cancellation, () => {
        isSpent = true;
      });
      isSpent = outcome.sent;
      // Before the agent gets the result and can end the message: the record then has the outcome of the call.
      if (isSpent) await this.#options.approvals.settle(tenant_id, approval, outcome.result);
      return isSpent ? outcome : stillApproved(outcome);
    } finally {
      if (!isSpent) await this.#options.approvals.returnGrant(tenant_id, approval);
    }
  }

  /** @param sending called before the call leaves for an agent or a tool; a failure before that has done nothing */
  async #make(request: TracedRequest, cancellation: CallCancellation, sending?: () => void): Promise<Outcome> {
    const outcome = await this.#router.route(request, cancellation, sending);
    if (outcome.sent) this.#options.usage.count({ ...request.caller, session_id: request.parent?.session_id });
    return this.#policy.inspect(request, outcome);
  }
}

/** The deadline of a call, on `performance.now()`. */
function deadlineOf({ payload, parent }: ToolRequest): number {
  const requestedMs = payload.deadline_ms ?? (parent ? LIMITS.deadlineMsMax : LIMITS.toolDeadlineMsDefault);
  return Math.min(performance.now() + requestedMs, parent?.endsAtMs ?? Number.POSITIVE_INFINITY);
}

/** The call, limited to agents of the type that a human approves. */
function boundTo(request: TracedRequest, { type, id }: Executor): TracedRequest {
  if (type === 'platform') return request;
  const target = { ...request.payload.target, agent_type: id };
  return { ...request, payload: { ...request.payload, target } };
}
