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

/** One event of a dispatch: the states it starts from, the one it leads to, and the SQL function in `db/functions/` that does it. */
export interface DispatchTransition {
  event: string;
  from: readonly DispatchState[];
  to: DispatchState;
  sql: string;
}

/**
 * The life of a dispatch (architecture.md, "The life of a message"; docs/durability.md shows the same table, and a test compares them).
 * `accept` is the fast path: the accept transaction writes the dispatch as sent. States without a way out are final.
 */
export const DISPATCH_TRANSITIONS: readonly DispatchTransition[] = [
  { event: 'accept', from: [], to: 'sent', sql: 'accept_messages' },
  { event: 'open', from: [], to: 'open', sql: 'open_dispatch' },
  { event: 'send', from: ['open'], to: 'sent', sql: 'send_dispatch' },
  { event: 'complete', from: ['sent'], to: 'completed', sql: 'end_dispatches' },
  { event: 'fail', from: ['sent'], to: 'failed', sql: 'end_dispatches' },
  { event: 'lose', from: ['sent'], to: 'lost', sql: 'end_dispatches' },
  { event: 'ask', from: ['sent'], to: 'input_required', sql: 'ask_input' },
  { event: 'release', from: ['open', 'sent'], to: 'released', sql: 'release_dispatch' },
  { event: 'cancel', from: ['open', 'sent'], to: 'canceled', sql: 'cancel_messages' },
  { event: 'terminate', from: ['open', 'sent'], to: 'failed', sql: 'fail_message' },
];
