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

/** An event of a dispatch: its first states, its last, and the SQL function in `db/functions/` that writes it. */
export interface DispatchTransition {
  event: string;
  from: readonly DispatchState[];
  to: DispatchState;
  sql: string;
}

/** The transitions of a dispatch. docs/durability.md explains them, and a test compares the two tables. States without a transition are final. */
export const DISPATCH_TRANSITIONS: readonly DispatchTransition[] = [
  { event: 'accept', from: [], to: 'sent', sql: 'accept_messages' },
  { event: 'open', from: [], to: 'open', sql: 'open_dispatch' },
  { event: 'send', from: ['open'], to: 'sent', sql: 'send_dispatch' },
  { event: 'complete', from: ['sent'], to: 'completed', sql: 'end_dispatches' },
  { event: 'fail', from: ['sent'], to: 'failed', sql: 'end_dispatches' },
  { event: 'lose', from: ['sent'], to: 'lost', sql: 'end_dispatches' },
  { event: 'detach', from: ['sent'], to: 'lost', sql: 'detach_dispatch' },
  { event: 'ask', from: ['sent'], to: 'input_required', sql: 'ask_input' },
  { event: 'deliver', from: ['input_required'], to: 'completed', sql: 'deliver_held_answer' },
  { event: 'release', from: ['open', 'sent'], to: 'released', sql: 'release_dispatch' },
  { event: 'cancel', from: ['open', 'sent'], to: 'canceled', sql: 'cancel_messages' },
  { event: 'terminate', from: ['open', 'sent'], to: 'failed', sql: 'fail_message' },
];
