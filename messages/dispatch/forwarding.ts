import { errorMessage } from '../../runtime/errors.js';
import type { MessageCore } from '../core.js';
import type { DispatchEnd, Dispatches, OpenDispatch } from './dispatches.js';

/**
 * What the accepting process hears of a dispatch that it forwarded. An end: as the node has recorded it. `taken`: the node has the dispatch,
 * and its end is on the record or will be. `refused`: the node has not sent it and never will. `unheard`: nothing in time.
 */
export type Forwarded = DispatchEnd | 'taken' | 'refused' | 'unheard';

/** Forwards dispatches of the fast path to the nodes that hold the agents' sockets (docs/durability.md). */
export interface DispatchForwarder {
  /** Whether other nodes can be reached now. */
  readonly isReachable: boolean;
  /** A node that sends to hosted agents on behalf of a process that cannot; null when none is known. */
  hostedNode(): string | null;
  /**
   * Has the node `open.mesh_id` send a dispatch that is on the record as sent. Never rejects, and resolves within about two seconds.
   * @param elapsedMs since the accept transaction began: the node sends nothing after the lease
   */
  forward(open: OpenDispatch & { mesh_id: string }, elapsedMs: number): Promise<Forwarded>;
}

/** Takes dispatches that other processes forward to this node. */
export interface ForwardedDispatches {
  /**
   * Sends a dispatch. Each dispatch is to be given to it once.
   * @returns its end, which never rejects; null when nothing was sent and nothing will be
   */
  take(open: OpenDispatch, elapsedMs: number): Promise<DispatchEnd> | null;
  /** Resolves when routing knows why a dispatch was not sent, if the agent has its maximum: its message then goes to another. Never rejects. */
  refusalKnown(open: OpenDispatch): Promise<void>;
}

interface ForwardingOptions {
  core: Pick<MessageCore, 'log' | 'workflowStarter'>;
  dispatches: Pick<Dispatches, 'release'>;
}

/** Nothing was sent: the workflow of the message routes it again. Never rejects. */
export async function releaseUnsent({ core, dispatches }: ForwardingOptions, open: OpenDispatch): Promise<void> {
  const { tenant_id, message_id, session_id, dispatch_id } = open;
  await dispatches.release(open, 'NOT_REACHED_HERE', { nothingSent: true }).catch((error: unknown) => {
    // The workflow asks the node of the dispatch, which reports that it never sent it.
    const ids = { tenant_id, message_id, session_id, dispatch_id };
    core.log.warn({ err: errorMessage(error), ...ids }, 'dispatch could not be released yet');
  });
  core.workflowStarter.message(open);
}

/**
 * Forwards a dispatch and returns its end; without one the message's row tells the rest. The node that takes it hands its message over
 * where that is due. A dispatch of which nothing is heard is its workflow's to ask for. Never rejects.
 */
export async function forwardDispatch(
  options: ForwardingOptions,
  forwarder: DispatchForwarder,
  open: OpenDispatch & { mesh_id: string },
  elapsedMs: number,
): Promise<DispatchEnd> {
  const forwarded = await forwarder.forward(open, elapsedMs);
  if (typeof forwarded === 'object') return forwarded;
  if (forwarded === 'refused') await releaseUnsent(options, open);
  if (forwarded === 'unheard') options.core.workflowStarter.message(open);
  return { state: 'unrecorded', message: null };
}
