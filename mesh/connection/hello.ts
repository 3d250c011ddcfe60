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
    await context.registry.serializeHello(connection.agentKey, () => openInTurn(context, connection, opening));
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

/** Finds what the new connection replaces or continues, and opens it. The hellos of one agent take turns. */
async function openInTurn(context: MeshContext, connection: Connection, opening: DecidedHello): Promise<void> {
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
    await openAndWelcome(context, connection, opening, { previous, resumes, offered });
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

/** Opens the connection in the place of the previous one, settles what that has left, and welcomes the agent. */
async function openAndWelcome(
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
    raiseEpoch(context, connection, opening, { resumes, offered }),
  );
  if (typeof opened === 'string') return refuse(connection, opened);
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

/** Ends the socket of an instance for which no connection is opened. */
function refuse({ socket }: Connection, why: 'deregistered' | 'unknown' | 'not_admitted'): void {
  if (why === 'deregistered') {
    socket.fail('DEREGISTERED', 'The instance was deregistered.', CLOSE_CODES.DEREGISTERED);
  } else {
    const message = why === 'unknown' ? NOT_REGISTERED : 'The type of the instance may not join any more.';
    socket.fail('INSTANCE_ID_MISMATCH', message, CLOSE_CODES.INSTANCE_ID_MISMATCH);
  }
}

/** The socket that came to resume was lost before its welcome: the previous connection stays, under the raised epoch. */
async function keepPrevious({ statuses }: MeshContext, previous: Connection, { epoch }: Connection): Promise<void> {
  previous.epoch = epoch;
  if (previous.state !== 'READY') await statuses.write(previous, { status: previous.isLive ? 'draining' : 'offline' });
}

/** The transaction that makes this the agent's newest connection. */
async function raiseEpoch(
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
  const { clocks, statuses, sent, log } = context;
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
  const replayed = replays.map((dispatch) => dispatch.open.dispatch_id);
  const resumedWith = resumed ? (hello.resume_token ?? undefined) : undefined;
  connection.socket.send(welcomeFrame(context, connection, { resumed, resumedWith, replayed }));
  const { connectionId: connection_id, instance_id, epoch } = connection;
  log.info({ instance_id, connection_id, epoch, resumed, replayed: replayed.length }, 'agent connected');
  connection.transition(resumed ? 'resumed' : 'welcomed');
  for (const dispatch of replays) dispatch.send();
  context.tools.resumed(connection);
  if (drainLeftMs !== null) connection.requestClose(drainLeftMs, SHUTTING_DOWN, drainLeftMs + stopMarginMs(clocks));
  const ended = [...held.keys()].filter((frameId) => sent.get(frameId)?.isOpen !== true);
  await answerEnded(context, connection, ended);
}

interface Welcome {
  resumed: boolean;
  /** The token with which the agent has resumed. */
  resumedWith: string | undefined;
  /** Ids of the dispatches that are sent once more. */
  replayed: string[];
}

function welcomeFrame(
  context: MeshContext,
  connection: Connection,
  { resumed, resumedWith, replayed }: Welcome,
): string {
  const nodeUrl = context.nodeUrl();
  return encodeFrame('welcome', {
    connection_id: connection.connectionId,
    mesh_id: context.meshId,
    resumed,
    replayed_dispatches: replayed,
    resume_token: connection.resumeTokens.issue(resumedWith),
    resume_window_ms: context.resumeWindowMs,
    heartbeat_interval_ms: LIMITS.heartbeatIntervalMs,
    ping_interval_ms: context.clocks.pingIntervalMs,
    limits: { max_frame_bytes: LIMITS.frameBytes, max_inflight: LIMITS.dispatchesInFlightPerConnection },
    server_time: new Date().toISOString(),
    token_expires_at: new Date(connection.token.agent.token_exp * 1_000).toISOString(),
    reauth: true,
    ...(nodeUrl !== undefined && { resume_url: connectUrl(nodeUrl, connection.instance_id) }),
  });
}

/** The dispatches that the agent still has: frame id → number of the last chunk that it has sent, -1 for none. */
function heldBy({ inflight = [] }: HelloPayload): Map<string, number> {
  return new Map(inflight.map(({ dispatch_id, last_seq }) => [frameIdOf(dispatch_id), last_seq]));
}

/** Agents name a dispatch by its id or by the id of its frame. */
function frameIdOf(dispatchId: string): string {
  return dispatchId.startsWith('dsp_') ? uuidOf(dispatchId) : dispatchId;
}
