import { CLOSE_CODES } from '../../contracts/errors.js';
import { connectUrl, type HelloPayload } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import type { DecisionEvent } from '../../policy/verdict.js';
import { errorMessage, PlatformError } from '../../runtime/errors.js';
import { uuidOf } from '../../runtime/ids.js';
import { answerEnded } from '../frames/ended-dispatches.js';
import { encodeFrame } from '../frames/frames.js';
import type { Connection } from './connection.js';
import { openConnection } from './connection-rows.js';
import type { MeshContext } from './context.js';
import { decideHello } from './hello-policy.js';
import { OfferedDispatches } from './offered-dispatches.js';
import { stopMarginMs } from './stop-margin.js';

/** Reason in the `close_request` of a node that stops. */
export const SHUTTING_DOWN = 'The node is shutting down.';
const NOT_REGISTERED = 'The instance is not registered any more. Register it before it connects.';

/**
 * Answers `hello`. The newest socket wins. Before `welcome` is sent, its epoch is in the database, and the dispatches of the previous
 * connection either continue (with its resume token, if it was on this node or on one that has stopped) or have failed.
 */
export async function answerHello(context: MeshContext, connection: Connection, hello: HelloPayload): Promise<void> {
  if (hello.instance_id !== connection.instance_id) {
    const message = 'hello names another instance than the address.';
    return connection.socket.fail('INSTANCE_ID_MISMATCH', message, CLOSE_CODES.INSTANCE_ID_MISMATCH);
  }
  connection.transition('hello');
  try {
    const decided = await decideHello(context, connection.token.agent, hello);
    const opening = { hello, decided };
    await context.registry.serializeHello(connection.agentKey, () => replacePrevious(context, connection, opening));
  } catch (error) {
    if (error instanceof PlatformError && error.code === 'forbidden')
      return connection.socket.fail('POLICY_DENIED', error.message, CLOSE_CODES.POLICY_DENIED);
    context.log.warn({ err: errorMessage(error), instance_id: connection.instance_id }, 'hello could not be answered');
    connection.socket.fail('INTERNAL', 'The connection could not be registered. Try again.', CLOSE_CODES.INTERNAL);
  }
}

/** A `hello`, with the events of what policies have decided about it. */
interface DecidedHello {
  hello: HelloPayload;
  decided: readonly DecisionEvent[];
}

async function replacePrevious(context: MeshContext, connection: Connection, opening: DecidedHello): Promise<void> {
  const { hello } = opening;
  if (connection.state !== 'AWAIT_WELCOME') return;
  const { registry } = context;
  const { agentKey } = connection;
  const previous = registry.get(agentKey);
  const resumes = previous?.resumeTokens.accept(hello.resume_token) ? previous : undefined;
  if (context.drainLeftMs() !== null && !resumes)
    return connection.socket.close(CLOSE_CODES.GOING_AWAY, 'shutting down');
  const offered = resumes ? undefined : await OfferedDispatches.reserve(context, connection, hello.resume_token);
  try {
    await replace(context, connection, opening, { previous, resumes, offered });
  } finally {
    offered?.release();
  }
}

/** The connections and dispatches that a new connection replaces or continues. */
interface Previous {
  /** The agent's connection to this node so far. */
  previous: Connection | undefined;
  /** The connection in `previous`, if the new one resumes it. */
  resumes: Connection | undefined;
  /** What another node offers to the agent. */
  offered: OfferedDispatches | undefined;
}

async function replace(
  context: MeshContext,
  connection: Connection,
  opening: DecidedHello,
  { previous, resumes, offered }: Previous,
): Promise<void> {
  const { registry, runner } = context;
  const { agentKey } = connection;
  // Writes in progress carry the old epoch, so they finish before it is raised.
  await runner.writesSettled(agentKey);
  if (offered && connection.state !== 'AWAIT_WELCOME') return; // they stay offered to the agent's next socket
  const opened = await context.register(connection.tenant_id, () =>
    open(context, connection, opening, { resumes, offered }),
  );
  if (opened === 'deregistered') {
    return connection.socket.fail('DEREGISTERED', 'The instance was deregistered.', CLOSE_CODES.DEREGISTERED);
  }
  if (opened === 'not_admitted' || opened === 'unknown') {
    const message = opened === 'unknown' ? NOT_REGISTERED : 'The type of the instance may not join any more.';
    return connection.socket.fail('INSTANCE_ID_MISMATCH', message, CLOSE_CODES.INSTANCE_ID_MISMATCH);
  }
  offered?.claimed(opened.claimed);
  if (resumes && connection.state !== 'AWAIT_WELCOME') return keepPrevious(context, resumes, connection);
  if (resumes) resumes.resumedBy(connection);
  else previous?.transition(previous.state === 'SUSPENDED' ? 'hello_without_match' : 'replaced');
  registry.set(connection);
  if (!resumes) await runner.agentReplaced(agentKey, opened.open);
  const continues = offered !== undefined && (await offered.adopt(connection));
  // Not awaited: the `welcome` need not wait for calls that wait for a human.
  if (continues) void context.tools.continueCallsOf(connection, offered.claimedIds);
  await welcome(context, connection, opening.hello, resumes !== undefined || continues);
  if (continues) void offered.forget(connection);
  context.fill(connection);
}

/** The socket that came to resume was lost before its welcome: the previous connection stays, under the raised epoch. */
async function keepPrevious({ statuses }: MeshContext, previous: Connection, { epoch }: Connection): Promise<void> {
  previous.epoch = epoch;
  if (previous.state !== 'READY') await statuses.write(previous, { status: previous.isLive ? 'draining' : 'offline' });
}

async function open(
  context: MeshContext,
  connection: Connection,
  { hello, decided }: DecidedHello,
  { resumes, offered }: Pick<Previous, 'resumes' | 'offered'>,
): ReturnType<typeof openConnection> {
  const { registry, runner, db, meshId } = context;
  const { tenant_id, instance_id, agentKey } = connection;
  const opening = { tenant_id, instance_id, mesh_id: meshId, hello, decided, resumes: resumes?.epoch ?? null, offered };
  return registry.raiseEpoch(agentKey, async () => {
    const opened = await db
      .tenant(tenant_id, (tx) => openConnection(tx, opening))
      .catch((error: unknown) => {
        offered?.noteClaimUncertain(); // the commit may have gone through
        throw error;
      });
    if (typeof opened === 'string') return opened;
    connection.epoch = opened.epoch;
    if (resumes) runner.agentResumed(agentKey, opened.epoch);
    return opened;
  });
}

/** Sends `welcome` and, before any new dispatch, the dispatches that the agent does not have. */
async function welcome(
  context: MeshContext,
  connection: Connection,
  hello: HelloPayload,
  resumed: boolean,
): Promise<void> {
  const { meshId, resumeWindowMs, clocks, statuses, sent, log } = context;
  const drainLeftMs = context.drainLeftMs();
  if (drainLeftMs !== null && !resumed) connection.socket.close(CLOSE_CODES.GOING_AWAY, 'shutting down');
  if (connection.state !== 'AWAIT_WELCOME') {
    // The socket was lost. The agent comes back with its old token, and this node has no dispatch that it could continue.
    context.registry.remove(connection);
    return statuses.write(connection, { status: 'offline' });
  }
  const held = resumed ? heldBy(hello) : new Map<string, number>();
  const open = sent.openOf(connection.agentKey);
  for (const dispatch of open) dispatch.noteAnnouncedChunks(held.get(dispatch.frameId) ?? -1);
  const replays = open.filter((dispatch) => !held.has(dispatch.frameId));
  const nodeUrl = context.nodeUrl();
  const frame = encodeFrame('welcome', {
    connection_id: connection.connectionId,
    mesh_id: meshId,
    resumed,
    replayed_dispatches: replays.map((dispatch) => dispatch.open.dispatch_id),
    resume_token: connection.resumeTokens.issue(resumed ? (hello.resume_token ?? undefined) : undefined),
    resume_window_ms: resumeWindowMs,
    heartbeat_interval_ms: LIMITS.heartbeatIntervalMs,
    ping_interval_ms: clocks.pingIntervalMs,
    limits: { max_frame_bytes: LIMITS.frameBytes, max_inflight: LIMITS.dispatchesInFlightPerConnection },
    server_time: new Date().toISOString(),
    token_expires_at: new Date(connection.token.agent.token_exp * 1_000).toISOString(),
    reauth: true,
    ...(nodeUrl !== undefined && { resume_url: connectUrl(nodeUrl, connection.instance_id) }),
  });
  connection.socket.send(frame);
  const { connectionId: connection_id, instance_id, epoch } = connection;
  log.info({ instance_id, connection_id, epoch, resumed, replayed: replays.length }, 'agent connected');
  connection.transition(resumed ? 'resumed' : 'welcomed');
  for (const dispatch of replays) dispatch.send();
  context.tools.resumed(connection);
  if (drainLeftMs !== null) connection.requestClose(drainLeftMs, SHUTTING_DOWN, drainLeftMs + stopMarginMs(clocks));
  const ended = [...held.keys()].filter((frameId) => sent.get(frameId)?.isOpen !== true);
  await answerEnded(context, connection, ended);
}

/** The dispatches that the agent still has: frame id → number of the last chunk that it has sent, -1 for none. */
function heldBy({ inflight = [] }: HelloPayload): Map<string, number> {
  return new Map(inflight.map(({ dispatch_id, last_seq }) => [frameIdOf(dispatch_id), last_seq]));
}

/** Agents name a dispatch by its id or by the id of its frame. */
function frameIdOf(dispatchId: string): string {
  return dispatchId.startsWith('dsp_') ? uuidOf(dispatchId) : dispatchId;
}
