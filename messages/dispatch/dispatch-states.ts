/** States of a dispatch: one attempt to have one agent do a message. */
export type DispatchState =
  | 'open'
  | 'sent'
  | 'completed'
  | 'failed'
  | 'input_required'
  | 'canceled'
  | 'lost'
  | 'released';

/** A transition of a dispatch: its event, the states before and after it, and the SQL function in `db/functions/` that writes it. */
export interface DispatchTransition {
  event: string;
  from: readonly DispatchState[];
  to: DispatchState;
  sql: string;
}

/** The transitions of a dispatch, which `npm run docs` writes into docs/durability.md. States without a transition are final. */
export const DISPATCH_TRANSITIONS: readonly DispatchTransition[] = [
  /** A message is accepted, and an agent to which this process sends has room. */
  { event: 'accept', from: [], to: 'sent', sql: 'accept_messages' },
  /** A node takes a queued message for an agent with room; `end_dispatches` does so right behind the result of the agent's message before. */
  { event: 'take', from: [], to: 'sent', sql: 'take_messages' },
  /** The same, where policies decide about the dispatch first. */
  { event: 'open', from: [], to: 'open', sql: 'take_messages' },
  /** Policies allow the dispatch, and its node marks it before the first byte goes out. */
  { event: 'send', from: ['open'], to: 'sent', sql: 'send_dispatch' },
  /** The agent's result completes the message. */
  { event: 'complete', from: ['sent'], to: 'completed', sql: 'end_dispatches' },
  /** The agent reports a failure, breaks the protocol or passes the deadline. */
  { event: 'fail', from: ['sent'], to: 'failed', sql: 'end_dispatches' },
  /** The agent or its node is gone and may have acted: `AGENT_DISCONNECTED`. */
  { event: 'lose', from: ['sent'], to: 'lost', sql: 'end_dispatches' },
  /**
   * The same, and the message goes on: a tool call of it waits for a human or has not heard of the decision, which the next dispatch
   * carries; or its skill is [idempotent](#idempotent-skills) and the message is queued again.
   */
  { event: 'detach', from: ['sent'], to: 'lost', sql: 'detach_dispatch' },
  /** The agent asks a human, and the answer goes out in a new dispatch. Or a guard asks one about the agent's answer, which is held. */
  { event: 'ask', from: ['sent'], to: 'input_required', sql: 'ask_input' },
  /** A human approves the agent's answer, which completes the message. */
  { event: 'deliver', from: ['input_required'], to: 'completed', sql: 'deliver_held_answer' },
  /** Its node says that nothing went out. The message is queued again. */
  { event: 'release', from: ['open', 'sent'], to: 'released', sql: 'release_dispatch' },
  /** A caller, the end of the session or an operator cancels the message. */
  { event: 'cancel', from: ['open', 'sent'], to: 'canceled', sql: 'cancel_messages' },
  /** An operator terminated the message's workflow, or the approval of a tool call was refused, did not come in time or was asked for in vain, and the message fails with it. */
  { event: 'terminate', from: ['open', 'sent'], to: 'failed', sql: 'fail_message' },
];
