import { agentKeyOf } from '../../agents/agent-row.js';
import { LIMITS } from '../../contracts/limits.js';
import type { ToolDelivery, ToolResult } from '../../contracts/tools.js';
import { uuidOf } from '../../runtime/ids.js';
import type { CallParent } from '../../tools/call-context.js';
import type { PendingCall } from '../../tools/pending-calls.js';
import { agentBusy, type ToolCalls } from '../../tools/tool-calls.js';
import type { RoutedCall } from '../../tools/tool-link.js';
import { boundedResult, failureOf, type Outcome, refusal, unsent } from '../../tools/tool-result.js';
import type { InflightDispatch } from '../connected/inflight-dispatch.js';
import type { InflightTable } from '../connected/inflight-table.js';
import { AnswerQueue } from './answer-queue.js';
import type { Connection } from './connection.js';
import { type AgentFrame, encodeFrame, errorFrame } from './frames.js';
import type { Registry } from './registry.js';

type CallFrame = Extract<AgentFrame, { type: 'tool_call' }>;
type ResultFrame = Extract<AgentFrame, { type: 'tool_result' }>;
type ErrorFrame = Extract<AgentFrame, { type: 'error' }>;

/** The calls of one connection. */
interface Traffic {
  /** The agent's present one: a newer connection that resumes has the calls of the one before. */
  connection: Connection;
  /** What the agent waits for, by the frames of its calls. */
  readonly open: Map<string, AbortController>;
  /** What was given to the agent and has no answer yet. */
  readonly given: Set<PendingCall>;
  readonly answers: AnswerQueue;
}

/** The tool calls of connected agents: those that they make and those that they answer. */
export class AgentTools {
  readonly #registry: Registry;
  readonly #inflight: InflightTable;
  readonly #calls: ToolCalls;
  readonly #traffic = new WeakMap<Connection, Traffic>();
  readonly #parents = new WeakMap<InflightDispatch, CallParent>();

  constructor(around: { registry: Registry; inflight: InflightTable; calls: ToolCalls }) {
    this.#registry = around.registry;
    this.#inflight = around.inflight;
    this.#calls = around.calls;
    this.#calls.serve((call, signal) => this.#deliver(call, signal));
  }

  /** How many calls the agent is answering. */
  countOf(agentKey: string): number {
    return this.#calls.pending.countOf(agentKey);
  }

  /** Takes a call; its result goes out when it is there. */
  called(connection: Connection, frame: CallFrame): void {
    const { open, answers } = this.#trafficOf(connection);
    if (open.has(frame.id)) return; // a repeated frame: one result answers both
    const withdrawn = new AbortController();
    open.set(frame.id, withdrawn);
    void this.#run(connection, frame, withdrawn.signal).then((result) => {
      open.delete(frame.id);
      answers.push(encodeFrame('tool_result', result, { reply_to: frame.id, traceparent: frame.traceparent }));
    });
  }

  /** Takes the result of a call that the agent was answering. */
  answered(connection: Connection, { reply_to, payload }: Pick<ResultFrame, 'reply_to' | 'payload'>): void {
    const pendingCall = this.#calls.pending.get(reply_to, connection.agentKey);
    if (pendingCall) pendingCall.settle({ sent: true, result: boundedResult(payload) });
    else this.#answerUnopened(connection, reply_to);
  }

  /** Takes an error about a call: that of a tool that failed, or of a caller that withdraws. @returns false when it is about none */
  failed(connection: Connection, { reply_to, payload }: Pick<ErrorFrame, 'reply_to' | 'payload'>): boolean {
    const pendingCall = this.#calls.pending.get(reply_to, connection.agentKey);
    if (pendingCall) {
      pendingCall.settle({ sent: true, result: failureOf(payload) });
      return true;
    }
    const withdrawn = this.#traffic.get(connection)?.open.get(reply_to);
    withdrawn?.abort();
    if (withdrawn) return true;
    if (!this.#calls.pending.endedRecently(reply_to, connection.agentKey)) return false;
    this.#answerUnopened(connection, reply_to);
    return true;
  }

  /** The socket is gone: its calls are withdrawn, and what its agent was answering has no answer. */
  socketLost(connection: Connection): void {
    const traffic = this.#traffic.get(connection);
    if (!traffic) return;
    this.#traffic.delete(connection);
    traffic.answers.clear();
    for (const withdrawn of traffic.open.values()) withdrawn.abort();
    const result = refusal('AGENT_DISCONNECTED', 'The agent was lost while it answered the call.');
    for (const pendingCall of [...traffic.given]) pendingCall.settle({ sent: true, result });
  }

  /** The agent resumes while its socket before still stands: all calls go on by the newer one. */
  takenOver(before: Connection, connection: Connection): void {
    const traffic = this.#traffic.get(before);
    if (!traffic) return;
    this.#traffic.delete(before);
    traffic.connection = connection;
    this.#traffic.set(connection, traffic);
  }

  #trafficOf(connection: Connection): Traffic {
    const known = this.#traffic.get(connection);
    if (known) return known;
    const answers = new AnswerQueue(() => traffic.connection.socket);
    const traffic: Traffic = { connection, open: new Map(), given: new Set(), answers };
    this.#traffic.set(connection, traffic);
    return traffic;
  }

  async #run(connection: Connection, frame: CallFrame, signal: AbortSignal): Promise<ToolResult> {
    const { tenant_id, agent_type, instance_id, agentKey } = connection;
    const { dispatch_id } = frame.payload;
    const parent = dispatch_id ? this.#parentOf(connection, dispatch_id) : undefined;
    if (dispatch_id && !parent)
      return refusal('UNKNOWN_DISPATCH', 'dispatch_id names no dispatch or tool call that this instance is answering.');
    const caller = { tenant_id, agent_type, instance_id, key: agentKey };
    return this.#calls.call({ caller, payload: frame.payload, parent, signal, traceparent: frame.traceparent });
  }

  #parentOf({ agentKey }: Connection, id: string): CallParent | undefined {
    const pendingCall = this.#calls.pending.get(uuidOf(id), agentKey);
    if (pendingCall?.call.call_id === id) return pendingCall.asParent;
    const dispatch = this.#inflight.get(uuidOf(id));
    return dispatch?.ref.dispatch_id === id && dispatch.agentKey === agentKey
      ? this.#parentOfDispatch(dispatch)
      : undefined;
  }

  #parentOfDispatch(dispatch: InflightDispatch): CallParent | undefined {
    const { given } = dispatch;
    if (!dispatch.isOpen || !given) return undefined;
    const known = this.#parents.get(dispatch);
    if (known) return known;
    const ended = new AbortController();
    void dispatch.done.then(() => ended.abort());
    const { session_id, propagation_headers } = given.payload.session_context;
    const { traceparent } = propagation_headers;
    const parent = { chain: [], endsAtMs: given.endsAtMs, ended: ended.signal, session_id, traceparent };
    this.#parents.set(dispatch, parent);
    return parent;
  }

  async #deliver(call: RoutedCall, signal: AbortSignal): Promise<Outcome> {
    const agentKey = agentKeyOf({ tenant_id: call.tenant_id, instance_id: call.target.instance_id });
    const connection = this.#registry.get(agentKey);
    if (connection?.state !== 'READY') return unsent('TARGET_UNAVAILABLE', 'The agent is not connected.');
    if (connection.socket.isCongested || this.countOf(agentKey) >= LIMITS.pendingToolCallsPerAgent) return agentBusy();
    if (signal.aborted) return unsent('CANCELED', 'The call was withdrawn.');
    const pendingCall = this.#calls.pending.add(call);
    const traffic = this.#trafficOf(connection);
    traffic.given.add(pendingCall);
    const frameId = uuidOf(call.call_id);
    const stop = (): void => {
      traffic.connection.socket.send(errorFrame('CANCELED', 'The answer is not wanted any more.', frameId));
      pendingCall.settle({ sent: true, result: refusal('CANCELED', 'The call was withdrawn.') });
    };
    const late = setTimeout(stop, call.deadline_ms);
    signal.addEventListener('abort', stop, { once: true });
    const frame = encodeFrame('tool_call', deliveryOf(call), { id: frameId, traceparent: call.traceparent });
    if (!connection.socket.send(frame)) pendingCall.settle(unsent('TARGET_UNAVAILABLE', 'The agent is not connected.'));
    try {
      return await pendingCall.done;
    } finally {
      clearTimeout(late);
      traffic.given.delete(pendingCall);
      signal.removeEventListener('abort', stop);
    }
  }

  #answerUnopened(connection: Connection, frameId: string): void {
    const ended = this.#calls.pending.endedRecently(frameId, connection.agentKey);
    const frame = ended
      ? errorFrame('DISPATCH_ALREADY_TERMINAL', 'The call has ended.', frameId)
      : errorFrame('UNKNOWN_DISPATCH', 'This instance has no such call.', frameId);
    connection.socket.send(frame);
  }
}

function deliveryOf({
  call_id,
  tool,
  arguments: given,
  session_id,
  deadline_ms,
  idempotency_key,
  caller,
}: RoutedCall): ToolDelivery {
  const session = session_id === undefined ? {} : { session_id };
  return { tool, arguments: given, dispatch_id: call_id, ...session, deadline_ms, idempotency_key, caller };
}
