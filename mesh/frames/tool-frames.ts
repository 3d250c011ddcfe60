import type { ToolDelivery, ToolResult } from '../../contracts/api/tools.js';
import { LIMITS } from '../../contracts/limits.js';
import { agentKeyOf, uuidOf } from '../../runtime/ids.js';
import { type CallParent, type ToolRequest, type WhileHeld, WITHDRAWN } from '../../tools/call-context.js';
import type { PendingCall } from '../../tools/pending-calls.js';
import type { ToolCalls } from '../../tools/tool-calls.js';
import type { RoutedCall } from '../../tools/tool-link.js';
import { boundedResult, failureOf, type Outcome, refusal, unsent } from '../../tools/tool-result.js';
import { agentBusy } from '../../tools/tool-router.js';
import type { SentDispatches } from '../connected/connected-transport.js';
import type { Connection, Registry } from '../connection/connection.js';
import { AnswerQueue } from './answer-queue.js';
import { CallParents } from './call-parents.js';
import { type AgentFrame, encodeFrame, errorFrame } from './frames.js';
import { ASKED_FIRST, HeldResults, NODE_LOST } from './held-results.js';

type CallFrame = Extract<AgentFrame, { type: 'tool_call' }>;
type ResultFrame = Extract<AgentFrame, { type: 'tool_result' }>;
type ErrorFrame = Extract<AgentFrame, { type: 'error' }>;

/** The tool calls of one connection. */
interface ConnectionCalls {
  /** The agent's current connection; one that resumes takes over the calls of the one before. */
  connection: Connection;
  /** Calls that the agent has made, by frame id. */
  readonly made: Map<string, AbortController>;
  /** Calls that the agent is answering. */
  readonly answering: Set<PendingCall>;
  readonly answers: AnswerQueue;
}

/** The frames of tool calls that connected agents make and answer. */
export class AgentTools {
  readonly #registry: Registry;
  readonly #sent: SentDispatches;
  readonly #calls: ToolCalls;
  readonly #byConnection = new WeakMap<Connection, ConnectionCalls>();
  readonly #parents: CallParents;
  /** The results of held calls. These outlive the connection that made them. */
  readonly #heldResults: HeldResults;

  constructor({ registry, sent, calls }: { registry: Registry; sent: SentDispatches; calls: ToolCalls }) {
    this.#registry = registry;
    this.#sent = sent;
    this.#calls = calls;
    this.#parents = new CallParents(sent, calls);
    this.#calls.serve((call, signal) => this.#deliver(call, signal));
    this.#heldResults = new HeldResults(
      (agentKey, frame) => this.#answer(agentKey, frame),
      (agentKey, requestId) => {
        const tenantId = this.#registry.get(agentKey)?.tenant_id;
        if (tenantId !== undefined) void this.#calls.approvals.noteResultSent(tenantId, requestId);
      },
    );
  }

  /** How many calls the agent is answering. */
  countOf(agentKey: string): number {
    return this.#calls.pending.countOf(agentKey);
  }

  /** Takes a call, and sends its result when there is one. */
  called(connection: Connection, frame: CallFrame): void {
    const { agentKey } = connection;
    const { made, answers } = this.#callsOf(connection);
    if (made.has(frame.id) || this.#heldResults.has(agentKey, frame.id)) return; // a repeated frame: one result answers both
    const withdrawn = new AbortController();
    made.set(frame.id, withdrawn);
    const about = { reply_to: frame.id, traceparent: frame.traceparent };
    const { dispatch_id } = frame.payload;
    const parent = dispatch_id ? this.#parents.of(connection, dispatch_id) : undefined;
    const held = this.#whileHeld(agentKey, frame.id, parent, withdrawn);
    const begin = (): void => {
      made.delete(frame.id);
      held.begin();
      answers.push(encodeFrame('tool_result', ASKED_FIRST, about));
    };
    const whileHeld = { ...held, begin };
    void this.#run(connection, frame, { parent, signal: withdrawn.signal, whileHeld }).then((result) => {
      made.delete(frame.id);
      const answer = encodeFrame('tool_result', result, about);
      if (!this.#heldResults.answer(agentKey, frame.id, answer)) answers.push(answer);
    });
  }

  /**
   * Goes on with the calls that wait for a human, or whose result has not reached the agent, in dispatches which another node has passed on to
   * this one. Never rejects.
   */
  async continueCallsOf(connection: Connection, dispatchIds: string[]): Promise<void> {
    const { tenant_id, agentKey } = connection;
    const takenOver = await this.#calls.approvals.takeOver(tenant_id, dispatchIds);
    for (const { dispatch_id, request_id, call, used_by } of takenOver) {
      const parent = this.#parents.of(connection, dispatch_id);
      const { frame_id, traceparent, payload, deadline_ms } = call;
      if (!parent || frame_id === undefined) continue; // its dispatch has ended, or its caller asks again over HTTP
      const withdrawn = new AbortController();
      const about = { reply_to: frame_id, ...(traceparent !== undefined && { traceparent }) };
      const whileHeld = this.#whileHeld(agentKey, frame_id, parent, withdrawn);
      if (used_by !== null) {
        this.#heldResults.add(agentKey, frame_id, withdrawn, parent.ended);
        whileHeld.waitsFor(request_id);
        this.#heldResults.answer(agentKey, frame_id, encodeFrame('tool_result', NODE_LOST, about));
        continue;
      }
      const request = {
        ...{ caller: callerOf(connection), parent, signal: withdrawn.signal, whileHeld },
        ...(traceparent !== undefined && { traceparent }),
        payload: { ...payload, arguments: {}, deadline_ms },
      };
      void this.#calls.resume(request, request_id).then((result) => {
        this.#heldResults.answer(agentKey, frame_id, encodeFrame('tool_result', result, about));
      });
    }
  }

  /** The agent has resumed: it gets the results that came while it was away. */
  resumed({ agentKey }: Connection): void {
    this.#heldResults.flush(agentKey);
  }

  /** Takes the result of a call that the agent is answering. */
  answered(connection: Connection, { reply_to, payload }: Pick<ResultFrame, 'reply_to' | 'payload'>): void {
    const pendingCall = this.#calls.pending.get(reply_to, connection.agentKey);
    if (pendingCall) pendingCall.settle({ sent: true, result: boundedResult(payload) });
    else this.#answerNotOpen(connection, reply_to);
  }

  /** Takes an error frame about a call: the agent could not answer it, or withdraws one that it made. @returns false when it is about no call */
  failed(connection: Connection, { reply_to, payload }: Pick<ErrorFrame, 'reply_to' | 'payload'>): boolean {
    const pendingCall = this.#calls.pending.get(reply_to, connection.agentKey);
    if (pendingCall) {
      pendingCall.settle({ sent: true, result: failureOf(payload) });
      return true;
    }
    const withdrawn =
      this.#byConnection.get(connection)?.made.get(reply_to) ?? this.#heldResults.get(connection.agentKey, reply_to);
    withdrawn?.abort(WITHDRAWN);
    if (withdrawn) return true;
    if (!this.#calls.pending.endedRecently(reply_to, connection.agentKey)) return false;
    this.#answerNotOpen(connection, reply_to);
    return true;
  }

  /**
   * The socket is gone: ends the calls that the agent made, but for those that wait for a human, and fails those that it was answering.
   */
  socketLost(connection: Connection): void {
    const calls = this.#byConnection.get(connection);
    if (!calls) return;
    this.#byConnection.delete(connection);
    calls.answers.clear();
    for (const withdrawn of calls.made.values()) withdrawn.abort();
    const result = refusal('AGENT_DISCONNECTED', 'The agent was lost while it answered the call.');
    for (const pendingCall of [...calls.answering]) pendingCall.settle({ sent: true, result });
  }

  /** The agent resumes while its previous socket is still open: its calls continue on the new connection. */
  moveCalls(from: Connection, to: Connection): void {
    const calls = this.#byConnection.get(from);
    if (!calls) return;
    this.#byConnection.delete(from);
    calls.connection = to;
    this.#byConnection.set(to, calls);
  }

  #callsOf(connection: Connection): ConnectionCalls {
    const known = this.#byConnection.get(connection);
    if (known) return known;
    const answers = new AnswerQueue(() => calls.connection.socket);
    const calls: ConnectionCalls = { connection, made: new Map(), answering: new Set(), answers };
    this.#byConnection.set(connection, calls);
    return calls;
  }

  async #run(
    connection: Connection,
    { payload, traceparent }: CallFrame,
    context: Pick<ToolRequest, 'parent' | 'signal' | 'whileHeld'>,
  ): Promise<ToolResult> {
    if (payload.dispatch_id && !context.parent)
      return refusal('UNKNOWN_DISPATCH', 'dispatch_id names no dispatch or tool call that this instance is answering.');
    const caller = callerOf(connection);
    return this.#calls.call({ caller, payload, ...context, ...(traceparent !== undefined && { traceparent }) });
  }

  /** What happens while a call is held: the deadline of its dispatch stands still, and the call outlives its socket. */
  #whileHeld(agentKey: string, frameId: string, parent: CallParent | undefined, withdrawn: AbortController): WhileHeld {
    const dispatch = parent?.dispatch && this.#sent.get(uuidOf(parent.dispatch.dispatch_id));
    return {
      frameId,
      begin: (): void => {
        dispatch?.deadline.pause();
        this.#heldResults.add(agentKey, frameId, withdrawn, parent?.ended);
      },
      waitsFor: (requestId: string): void => this.#heldResults.waitsFor(agentKey, frameId, requestId),
      end: (): void => dispatch?.deadline.resume(),
    };
  }

  /** Sends an answer on the agent's present connection. @returns false when there is none */
  #answer(agentKey: string, frame: string): boolean {
    const connection = this.#registry.get(agentKey);
    if (!connection?.isLive) return false;
    this.#callsOf(connection).answers.push(frame);
    return true;
  }

  async #deliver(call: RoutedCall, signal: AbortSignal): Promise<Outcome> {
    const agentKey = agentKeyOf({ tenant_id: call.tenant_id, instance_id: call.target.instance_id });
    const connection = this.#registry.get(agentKey);
    if (connection?.state !== 'READY') return unsent('TARGET_UNAVAILABLE', 'The agent is not connected.');
    if (connection.socket.isCongested || this.countOf(agentKey) >= LIMITS.pendingToolCallsPerAgent) return agentBusy();
    if (signal.aborted) return unsent('CANCELED', 'The call was withdrawn.');
    const pendingCall = this.#calls.pending.add(call);
    const calls = this.#callsOf(connection);
    calls.answering.add(pendingCall);
    const frameId = uuidOf(call.call_id);
    const stop = (): void => {
      calls.connection.socket.send(errorFrame('CANCELED', 'The answer is not wanted any more.', frameId));
      pendingCall.settle({ sent: true, result: refusal('CANCELED', 'The call was withdrawn.') });
    };
    const late = setTimeout(stop, call.deadline_ms);
    signal.addEventListener('abort', stop, { once: true });
    const { call_id: dispatch_id, tool, arguments: given, session_id, deadline_ms, idempotency_key, caller } = call;
    const about = { tool, arguments: given, dispatch_id, ...(session_id !== undefined && { session_id }) };
    const delivery: ToolDelivery = { ...about, deadline_ms, idempotency_key, caller };
    const frame = encodeFrame('tool_call', delivery, { id: frameId, traceparent: call.traceparent });
    if (!connection.socket.send(frame)) pendingCall.settle(unsent('TARGET_UNAVAILABLE', 'The agent is not connected.'));
    try {
      return await pendingCall.done;
    } finally {
      clearTimeout(late);
      calls.answering.delete(pendingCall);
      signal.removeEventListener('abort', stop);
    }
  }

  #answerNotOpen(connection: Connection, frameId: string): void {
    const ended = this.#calls.pending.endedRecently(frameId, connection.agentKey);
    const frame = ended
      ? errorFrame('DISPATCH_ALREADY_TERMINAL', 'The call has ended.', frameId)
      : errorFrame('UNKNOWN_DISPATCH', 'This instance has no such call.', frameId);
    connection.socket.send(frame);
  }
}

function callerOf({ tenant_id, agent_type, instance_id, agentKey, token }: Connection): ToolRequest['caller'] {
  return { tenant_id, agent_type, instance_id, key: agentKey, token: token.agent.claims };
}
