import { CLOSE_CODES } from '../../contracts/errors.js';
import type { HelloPayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import { errorMessage } from '../../runtime/errors.js';
import { uuidOf } from '../../runtime/ids.js';
import type { InflightDispatch } from '../connected/inflight-dispatch.js';
import { persist } from '../persistence.js';
import type { Connection } from './connection.js';
import { type OpenRef, openConnection } from './connection-rows.js';
import type { MeshContext } from './context.js';
import { answerHeld } from './dispatch-frames.js';
import { encodeFrame } from './frames.js';

/** Said in the `close_request` of a node that is stopped. */
export const SHUTTING_DOWN = 'The node is shutting down.';
const UNKNOWN = 'The instance is not registered any more. Register it before it connects.';

/**
 * Answers `hello`. The newest socket wins: its epoch is in the database before `welcome`, and what the connection before it
 * had in flight is either taken over (matching resume token, on this node) or has failed by then (specification section 6).
 */
export async function answerHello(context: MeshContext, connection: Connection, hello: HelloPayload): Promise<void> {
  if (hello.instance_id !== connection.instance_id) {
    const message = 'hello names another instance than the address.';
    return connection.socket.fail('INSTANCE_ID_MISMATCH', message, CLOSE_CODES.INSTANCE_ID_MISMATCH);
  }
  connection.happen('hello');
  try {
    await context.registry.oneHello(connection.agentKey, () => takeOver(context, connection, hello));
  } catch (error) {
    context.log.warn({ err: errorMessage(error), instance_id: connection.instance_id }, 'hello could not be answered');
    connection.socket.fail('INTERNAL', 'The connection could not be registered. Try again.', CLOSE_CODES.INTERNAL);
  }
}

async function takeOver(context: MeshContext, connection: Connection, hello: HelloPayload): Promise<void> {
  if (connection.state !== 'AWAIT_WELCOME') return;
  const { registry, inflight } = context;
  const { agentKey } = connection;
  const previous = registry.get(agentKey);
  const resumes = previous?.isResumedBy(hello.resume_token) ? previous : undefined;
  if (context.drainLeftMs() !== null && !resumes)
    return connection.socket.close(CLOSE_CODES.GOING_AWAY, 'shutting down');
  await settled(inflight.ofAgent(agentKey));
  const opened = await context.registrationLimit(() => open(context, connection, hello, resumes?.epoch ?? null));
  if (opened === 'deregistered') {
    return connection.socket.fail('DEREGISTERED', 'The instance was deregistered.', CLOSE_CODES.DEREGISTERED);
  }
  if (opened === 'kept_out' || opened === 'unknown') {
    const message = opened === 'unknown' ? UNKNOWN : 'The type of the instance may not join any more.';
    return connection.socket.fail('INSTANCE_ID_MISMATCH', message, CLOSE_CODES.INSTANCE_ID_MISMATCH);
  }
  if (resumes && connection.state !== 'AWAIT_WELCOME') return stay(context, resumes, connection);
  if (resumes) resumes.handOver(connection);
  else previous?.happen(previous.state === 'SUSPENDED' ? 'hello_without_match' : 'replaced');
  registry.set(connection);
  if (!resumes) {
    // What is being committed here is either in flight after this, or was given back.
    await Promise.all(opened.map((ref) => context.reservations.settled(ref.dispatch_id)));
    await inflight.failAllAsLost(agentKey);
    await Promise.all(opened.map((ref) => persist(() => letGo(context, ref), context.log)));
  }
  await welcome(context, connection, hello, resumes !== undefined);
  // Not waited for: messages that wait look again by themselves, only later.
  wakeQueued(context, connection).catch((error: unknown) =>
    context.log.warn({ err: errorMessage(error) }, 'messages that wait for an agent could not be called'),
  );
}

/** The socket that came to resume was lost before its welcome: the connection before keeps its place, under the epoch that was raised. */
async function stay({ statuses }: MeshContext, before: Connection, { epoch }: Connection): Promise<void> {
  before.epoch = epoch;
  if (before.state !== 'READY') await statuses.write(before, { status: before.isLive ? 'draining' : 'offline' });
}

function wakeQueued({ dispatches, log, registrationLimit }: MeshContext, connection: Connection): Promise<void> {
  return persist(() => registrationLimit(() => dispatches.agentJoined(connection.tenant_id, connection)), log);
}

/** Ends a dispatch of a connection that is gone; one that this node never sent is routed again. */
async function letGo({ dispatches, inflight, meshId }: MeshContext, ref: OpenRef): Promise<void> {
  const never = ref.mesh_id === meshId && !inflight.hasSent(uuidOf(ref.dispatch_id));
  if (never) await dispatches.release(ref, 'NEVER_SENT', { nothingSent: true });
  else await dispatches.failAsLost(ref, 'AGENT_DISCONNECTED');
}

/** Waits for writes under way, so that none is caught between two epochs. What waits for the agent is not waited for. */
async function settled(dispatches: InflightDispatch[]): Promise<void> {
  await Promise.all(dispatches.map((dispatch) => dispatch.marked));
  await Promise.all(dispatches.filter((dispatch) => !dispatch.isOpen).map((dispatch) => dispatch.done));
}

async function open(context: MeshContext, connection: Connection, hello: HelloPayload, resumes: number | null) {
  const { registry, inflight, db, meshId } = context;
  const { tenant_id, instance_id, agentKey } = connection;
  return registry.fence(agentKey, async () => {
    const opened = await db.tenant(tenant_id, (tx) =>
      openConnection(tx, { tenant_id, instance_id, mesh_id: meshId, hello, resumes }),
    );
    if (typeof opened === 'string') return opened;
    connection.epoch = opened.epoch;
    if (resumes !== null) for (const dispatch of inflight.ofAgent(agentKey)) dispatch.epoch = opened.epoch;
    return opened.open;
  });
}

/** Sends `welcome` and, before any new work can follow, what is to be sent again. */
async function welcome(
  context: MeshContext,
  connection: Connection,
  hello: HelloPayload,
  resumed: boolean,
): Promise<void> {
  const { meshId, resumeWindowMs, timings, statuses, inflight, log } = context;
  const drainLeftMs = context.drainLeftMs();
  if (drainLeftMs !== null && !resumed) connection.socket.close(CLOSE_CODES.GOING_AWAY, 'shutting down');
  if (connection.state !== 'AWAIT_WELCOME') {
    // The socket was lost meanwhile, and with it the window in which the work was kept.
    context.registry.remove(connection);
    if (resumed) await inflight.failAllAsLost(connection.agentKey);
    return statuses.write(connection, { status: 'offline' });
  }
  const held = resumed ? heldBy(hello) : new Map<string, number>();
  const open = inflight.ofAgent(connection.agentKey).filter((dispatch) => dispatch.isOpen);
  for (const dispatch of open) dispatch.heldUpTo(held.get(dispatch.frameId) ?? -1);
  const replays = open.filter((dispatch) => !held.has(dispatch.frameId));
  const frame = encodeFrame('welcome', {
    connection_id: connection.connectionId,
    mesh_id: meshId,
    resumed,
    replayed_dispatches: replays.map((dispatch) => dispatch.ref.dispatch_id),
    resume_token: connection.issueResumeToken(resumed ? (hello.resume_token ?? undefined) : undefined),
    resume_window_ms: resumeWindowMs,
    heartbeat_interval_ms: LIMITS.heartbeatIntervalMs,
    ping_interval_ms: timings.pingIntervalMs,
    limits: { max_frame_bytes: LIMITS.frameBytes, max_inflight: LIMITS.dispatchesInFlightPerConnection },
    server_time: new Date().toISOString(),
    token_expires_at: new Date(connection.upgraded.token_exp * 1_000).toISOString(),
  });
  connection.socket.send(frame);
  const { connectionId: connection_id, instance_id, epoch } = connection;
  log.info({ instance_id, connection_id, epoch, resumed, replayed: replays.length }, 'agent connected');
  connection.happen(resumed ? 'resumed' : 'welcomed');
  for (const dispatch of replays) dispatch.resend();
  if (drainLeftMs !== null) connection.requestClose(drainLeftMs, SHUTTING_DOWN);
  const ended = [...held.keys()].filter((frameId) => inflight.get(frameId)?.isOpen !== true);
  await answerHeld(context, connection, ended);
}

/** The dispatches that the agent says it holds: frame id → number of the last chunk that it has sent, -1 for none. */
function heldBy({ inflight = [] }: HelloPayload): Map<string, number> {
  return new Map(inflight.map(({ dispatch_id, last_seq }) => [frameIdOf(dispatch_id), last_seq]));
}

/** Agents name a dispatch by its id or by its frame's. */
function frameIdOf(dispatchId: string): string {
  return dispatchId.startsWith('dsp_') ? uuidOf(dispatchId) : dispatchId;
}
