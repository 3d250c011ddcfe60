import { setMaxListeners } from 'node:events';
import { uuidOf } from '../../runtime/ids.js';
import type { CallParent } from '../../tools/call-context.js';
import type { ToolCalls } from '../../tools/tool-calls.js';
import type { SentDispatch, SentDispatches } from '../connected/connected-transport.js';
import type { Connection } from '../connection/connection.js';

/** Finds what a tool call of a connected agent is part of: the dispatch or tool call that the agent is answering. */
export class CallParents {
  readonly #sent: SentDispatches;
  readonly #calls: Pick<ToolCalls, 'pending'>;
  readonly #known = new WeakMap<SentDispatch, CallParent>();

  constructor(sent: SentDispatches, calls: Pick<ToolCalls, 'pending'>) {
    this.#sent = sent;
    this.#calls = calls;
  }

  /** The dispatch or tool call of that id, if the agent is answering it. */
  of({ agentKey }: Pick<Connection, 'agentKey'>, id: string): CallParent | undefined {
    const pendingCall = this.#calls.pending.get(uuidOf(id), agentKey);
    if (pendingCall?.call.call_id === id) return pendingCall.asParent;
    const dispatch = this.#sent.get(uuidOf(id));
    return dispatch?.open.dispatch_id === id && dispatch.agentKey === agentKey ? this.#ofDispatch(dispatch) : undefined;
  }

  #ofDispatch(dispatch: SentDispatch): CallParent | undefined {
    if (!dispatch.isOpen) return undefined;
    const known = this.#known.get(dispatch);
    if (known) return known;
    const ended = new AbortController();
    setMaxListeners(0, ended.signal); // each call adds a listener
    void dispatch.result.then(() => ended.abort());
    const { traceparent, open, deadline } = dispatch;
    const { tenant_id, message_id, dispatch_id, session_id, skill_id } = open;
    const parent = {
      chain: [],
      get endsAtMs() {
        return deadline.endsAtMs;
      },
      dispatch: { tenant_id, message_id, dispatch_id },
      ended: ended.signal,
      session_id,
      skill_id,
      traceparent,
      message_id,
    };
    this.#known.set(dispatch, parent);
    return parent;
  }
}
