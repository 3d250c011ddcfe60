import { agentKeyOf } from '../../agents/agent-row.js';
import { LIMITS } from '../../contracts/limits.js';
import type { OpenDispatch } from '../../messages/dispatch/dispatches.js';
import { uuidOf } from '../../runtime/ids.js';
import type { Connection } from '../connection/connection.js';
import type { MeshContext } from '../connection/context.js';
import type { DispatchEnd, Dispatcher, RoutedDispatch } from '../dispatcher.js';
import { watch } from '../hosted/in-flight.js';
import { persist } from '../persistence.js';
import type { InflightDispatch } from './inflight-dispatch.js';

/** Carries dispatches to the agents whose sockets are on this node. */
export function createConnectedDispatcher(context: MeshContext): Dispatcher {
  return {
    run: (ref, waiting) => watch(run(context, ref, waiting.signal), waiting, context.timings.heartbeatMs),
    sendHere: (open, leaseValid) => {
      const connection = context.registry.get(agentKeyOf(open));
      // A connection of another epoch is one that T1 did not see; while a hello is answered, that may be about to change.
      if (!connection || connection.epoch !== open.epoch || context.registry.isGreeting(connection.agentKey))
        return null;
      if (refusal(context, connection) !== undefined) return null;
      if (!leaseValid()) return null;
      const dispatch = context.inflight.startSent(open, connection);
      return dispatch.done.then(() => dispatch.localEnd());
    },
    cancel: async (ref, reason) => {
      await context.reservations.settled(ref.dispatch_id);
      const dispatch = context.inflight.get(uuidOf(ref.dispatch_id));
      dispatch?.closedElsewhere('canceled', reason);
      await dispatch?.done;
    },
  };
}

async function run(context: MeshContext, ref: RoutedDispatch, signal: AbortSignal): Promise<DispatchEnd> {
  const { inflight, dispatches, registry, reservations, log } = context;
  const frameId = uuidOf(ref.dispatch_id);
  await reservations.settled(ref.dispatch_id);
  const quick = inflight.get(frameId) ?? (await startAtOnce(context, ref, signal));
  if (quick) return quick.done;
  const found = await persist(() => dispatches.find(ref), log, signal);
  if (!found) return inflight.get(frameId)?.done ?? { kind: 'closed' };
  const agentKey = agentKeyOf(found);
  await registry.welcomed(agentKey);
  signal.throwIfAborted();
  return (inflight.get(frameId) ?? start(context, found, registry.get(agentKey))).done;
}

/** Starts a dispatch whose agent is there, without asking the database what marking it as sent will find out. */
async function startAtOnce(
  { inflight, registry, ...context }: MeshContext,
  ref: RoutedDispatch,
  signal: AbortSignal,
): Promise<InflightDispatch | undefined> {
  const frameId = uuidOf(ref.dispatch_id);
  const { tenant_id, instance_id } = ref;
  if (instance_id === undefined || inflight.hasSent(frameId)) return undefined;
  const agentKey = agentKeyOf({ tenant_id, instance_id });
  await registry.welcomed(agentKey);
  signal.throwIfAborted();
  const connection = registry.get(agentKey);
  if (!connection || refusal({ inflight, registry, ...context }, connection) !== undefined)
    return inflight.get(frameId);
  return inflight.get(frameId) ?? inflight.start(ref, connection);
}

/**
 * Starts a dispatch unless something stands against it. One that the record calls sent by this node, and that is not known here, was
 * never sent; one that was sent by a process that is gone is lost.
 */
function start(
  context: MeshContext,
  found: OpenDispatch,
  connection: Connection | undefined,
): Pick<InflightDispatch, 'done'> {
  const { inflight, dispatches, log } = context;
  if (found.sent_at !== null && found.mesh_id === context.meshId && !inflight.hasSent(uuidOf(found.dispatch_id))) {
    const taken = persist(() => dispatches.release(found, 'NEVER_SENT', { nothingSent: true }), log);
    return { done: taken.then(() => ({ kind: 'not_sent', reason: 'NEVER_SENT' })) };
  }
  if (found.sent_at !== null) {
    const lost = persist(() => dispatches.failAsLost(found, 'AGENT_DISCONNECTED'), log);
    return { done: lost.then(() => ({ kind: 'closed' })) };
  }
  const reason = refusal(context, connection);
  if (connection === undefined || reason !== undefined) {
    return { done: Promise.resolve({ kind: 'not_sent', reason: reason ?? 'NOT_CONNECTED' }) };
  }
  return inflight.start(found, connection);
}

/** Why nothing new can go to this agent now. */
function refusal(context: MeshContext, connection: Connection | undefined): string | undefined {
  if (!connection || connection.state === 'SUSPENDED' || connection.state === 'CLOSED') return 'NOT_CONNECTED';
  if (connection.state !== 'READY') return 'NOT_READY';
  if (context.inflight.countOf(connection.agentKey) >= LIMITS.dispatchesInFlightPerConnection) return 'AGENT_BUSY';
  if (connection.socket.isCongested) return 'BACKPRESSURE';
  return undefined;
}
