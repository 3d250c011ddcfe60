import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { OPERATIONS } from '../../contracts/api/operations.js';
import { CONNECT_PATH, SUBPROTOCOL } from '../../contracts/frames.js';
import { LIMITS } from '../../contracts/limits.js';
import type { Transport } from '../../messages/runner/transport.js';
import type { Clocks } from '../../runtime/clocks.js';
import { errorMessage, listenError, PlatformError } from '../../runtime/errors.js';
import { agentKeyOf } from '../../runtime/ids.js';
import { Loop } from '../../runtime/loop.js';
import { settledWithin } from '../../runtime/promises/settled-within.js';
import type { DeregisteredAgent } from '../../tools/tool-link.js';
import { ConnectedTransport } from '../connected/connected-transport.js';
import { Connection, type TransitionCounts } from '../connection/connection.js';
import type { MeshContext } from '../connection/context.js';
import { SHUTTING_DOWN } from '../connection/hello.js';
import { LAST_WRITES_MS, stopMarginMs } from '../connection/stop-margin.js';
import { handleText } from '../frames/agent-frames.js';
import { DispatchTransfer, markDraining } from '../nodes/dispatch-transfer.js';
import { MeshNode } from '../nodes/node.js';
import { Reconciler } from '../nodes/reconciler.js';
import { buildContext, type MeshServerOptions } from './build-context.js';
import { type Certificate, certificateEndsAtMs, createCertificateReload } from './certificate-reload.js';
import { Front } from './front.js';
import { checkHandshake, needsUpgrade } from './handshake.js';
import { refuseUpgrade, respondWithError } from './http-answer.js';

/** Paths of the HTTP API that the mesh address serves too. */
const SHARED_PATHS = new Set([OPERATIONS.health.path, '/send', '/sessions/interrupt', '/.well-known/agent-card.json']);

export interface MeshStats {
  ready: number;
  draining: number;
  suspended: number;
  inflight: number;
  /** How often each event has happened so far. */
  transitions: TransitionCounts;
  /** WebSocket upgrades so far. */
  handshakes: { accepted: number; refused: number };
}

/** A mesh node: the port that agents connect to, and the transport that reaches them. It starts with `listen`. */
export class MeshServer {
  /** Carries dispatches to the agents that are connected here. */
  readonly transport: Transport;
  readonly #options: MeshServerOptions;
  readonly #context: MeshContext;
  readonly #sockets: WebSocketServer;
  readonly #front: Front;
  readonly #node: MeshNode;
  readonly #transfer: DispatchTransfer;
  readonly #reconcile: Loop;
  /** Null if the certificate cannot be read again. */
  readonly #certificateReload: Loop | null;
  #certificateEndsAtMs: number | null;
  /** When the grace ends, on `performance.now()`; null until the node shuts down. */
  #drainEndsAtMs: number | null = null;
  readonly #handshakes = { accepted: 0, refused: 0 };
  #idle: () => void = () => undefined;

  constructor(options: MeshServerOptions) {
    this.#options = options;
    const { db, log, config, runner } = options;
    const context = buildContext(options, {
      drainLeftMs: () => this.#drainLeftMs,
      onIdle: () => this.#idle(),
      suspended: (connection) => this.#isDraining && void this.#transfer.offerNow([connection]),
    });
    const { clocks, registry } = context;
    this.#context = context;
    this.#transfer = new DispatchTransfer(context);
    this.transport = new ConnectedTransport({
      ...context,
      bus: options.bus,
      changes: options.changes,
      spans: options.spans,
      transfer: () => this.#transfer.run(),
    });
    this.#node = new MeshNode({ db, log, meshId: runner.meshId, registry, clocks });
    const reconciler = new Reconciler(context, options.authenticator);
    this.#reconcile = new Loop({
      name: 'reconcile',
      intervalMs: clocks.reconcileMs,
      work: () => reconciler.turn(),
      log,
    });
    this.#sockets = createSockets(clocks);
    this.#front = new Front({
      tls: options.tls,
      trustProxyCidrs: config.TRUST_PROXY_CIDRS,
      corsOrigins: config.CORS_ORIGINS,
      onRequest: (request, response) => this.#answer(request, response),
      onUpgrade: (request, socket, head) => void this.#upgrade(request, socket, head),
    });
    const { tls } = options;
    this.#certificateEndsAtMs = tls ? certificateEndsAtMs(tls) : null;
    const use = (certificate: Certificate) => {
      this.#front.useCertificate(certificate);
      this.#certificateEndsAtMs = certificateEndsAtMs(certificate);
    };
    const reload = { use, intervalMs: clocks.certificateMs, log };
    this.#certificateReload = tls?.read ? createCertificateReload({ current: tls, read: tls.read, ...reload }) : null;
  }

  /** When the certificate in use ends, in milliseconds since 1970; null behind a proxy that ends TLS. */
  get certificateEndsAtMs(): number | null {
    return this.#certificateEndsAtMs;
  }

  get #isDraining(): boolean {
    return this.#drainEndsAtMs !== null;
  }

  get #drainLeftMs(): number | null {
    return this.#drainEndsAtMs === null ? null : Math.max(0, this.#drainEndsAtMs - performance.now());
  }

  /** Registers the node, starts its loops and listens. */
  async listen(): Promise<{ port: number }> {
    const { config, log, runner } = this.#options;
    await this.#node.start();
    this.#reconcile.start();
    this.#certificateReload?.start();
    const port = await this.#front.listen(config.FLEET_HOST, config.FLEET_MESH_PORT).catch((error: unknown) => {
      throw listenError(error, 'FLEET_MESH_PORT');
    });
    log.info({ mesh_id: runner.meshId, port }, 'mesh listens');
    return { port };
  }

  /**
   * Takes no new agents and sends `close_request` to all. Where another node lives, the port closes, and dispatches of agents without a socket are
   * offered to it at once; alone, the port stays open to agents that come back to their work. Dispatches that are in flight after `graceMs` are
   * offered to another node; without one they fail with AGENT_DISCONNECTED. Resolves when nothing is in flight, with the port closed.
   */
  async drain(graceMs: number): Promise<void> {
    this.#drainEndsAtMs = performance.now() + graceMs;
    const { registry, runner, statuses, db, log, clocks } = this.#context;
    const endsInMs = graceMs + stopMarginMs(clocks);
    const marked = markDraining(db, runner.meshId).catch((error: unknown) =>
      log.warn({ err: errorMessage(error) }, 'the stop could not be noted'),
    );
    const suspended = registry.all().filter(({ state }) => state === 'SUSPENDED');
    for (const connection of registry.all()) {
      const mayGoOn = graceMs > 0 && runner.running.countOf(connection.agentKey) > 0;
      if (connection.state !== 'SUSPENDED') connection.requestClose(graceMs, SHUTTING_DOWN, endsInMs);
      else if (!mayGoOn) connection.transition('window_over');
    }
    // After the mark, so that nodes that stop together offer nothing to each other.
    void marked.then(() => this.#leaveToOthers(suspended));
    const idle = new Promise<void>((resolve) => {
      this.#idle = () => runner.running.size + this.#options.tools.pending.size === 0 && resolve();
      runner.running.whenIdle(() => this.#idle());
      this.#idle();
    });
    const graceOver = setTimeout(() => void this.#endGrace(), graceMs);
    await settledWithin(Promise.all([idle, marked]), endsInMs);
    clearTimeout(graceOver);
    this.#front.stopListening();
    await settledWithin(statuses.retry(), LAST_WRITES_MS);
  }

  /** Never rejects. */
  async #leaveToOthers(suspended: readonly Connection[]): Promise<void> {
    if (!(await this.#transfer.hasOtherNode())) return;
    this.#front.stopListening();
    await this.#transfer.offerNow(suspended);
  }

  /** Offers what is still in flight to other nodes, and ends the rest. */
  async #endGrace(): Promise<void> {
    await this.#transfer.run();
    for (const connection of this.#context.registry.all())
      connection.transition(connection.state === 'SUSPENDED' ? 'window_over' : 'grace_over');
  }

  /** Drains without grace, closes the port and removes the node. */
  async close(): Promise<void> {
    await this.drain(0);
    await this.#reconcile.stop();
    await this.#certificateReload?.stop();
    for (const socket of this.#sockets.clients) socket.terminate();
    await this.#front.close();
    await settledWithin(this.#context.statuses.retry(), LAST_WRITES_MS);
    await this.#node.stop();
  }

  /** Closes the connection that the agent had when it was deregistered, if that is on this node. */
  closeDeregistered(agent: DeregisteredAgent): void {
    const connection = this.#context.registry.get(agentKeyOf(agent));
    if (connection && connection.epoch <= agent.epoch) connection.deregistered();
  }

  stats(): MeshStats {
    const states = this.#context.registry.all().map((connection) => connection.state);
    const count = (wanted: string) => states.filter((state) => state === wanted).length;
    const { runner, transitions } = this.#context;
    const connections = { ready: count('READY'), draining: count('DRAINING'), suspended: count('SUSPENDED') };
    return { ...connections, inflight: runner.running.size, transitions, handshakes: this.#handshakes };
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url?.split('?', 1)[0] ?? '';
    const { handler, config } = this.#options;
    const refuse = (error: PlatformError) =>
      respondWithError(request, response, { error, origins: config.CORS_ORIGINS });
    if (handler && SHARED_PATHS.has(path)) handler(request, response);
    else if (path === CONNECT_PATH) refuse(needsUpgrade());
    else refuse(new PlatformError('NOT_FOUND', 'There is nothing here.'));
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { log } = this.#options;
    socket.on('error', () => socket.destroy());
    try {
      const agent = await checkHandshake(request, {
        authorize: this.#context.authorize,
        isClosedTo: (instance) => this.#isDraining && this.#context.runner.running.countOf(agentKeyOf(instance)) === 0,
      });
      if (socket.destroyed) return;
      this.#sockets.handleUpgrade(request, socket, head, (ws: WebSocket) => {
        this.#handshakes.accepted += 1;
        new Connection(ws, socket, agent, this.#context, (connection, text) =>
          handleText(this.#context, connection, text),
        );
      });
    } catch (error) {
      this.#handshakes.refused += 1;
      if (!(error instanceof PlatformError)) log.error({ err: error }, 'handshake failed');
      refuseUpgrade(request, socket, error);
    }
  }
}

function createSockets({ closeTimeoutMs }: Pick<Clocks, 'closeTimeoutMs'>): WebSocketServer {
  const bounds = { maxPayload: LIMITS.frameBytes, maxFragments: 1_024, closeTimeout: closeTimeoutMs };
  return new WebSocketServer({
    ...bounds,
    noServer: true,
    perMessageDeflate: false,
    handleProtocols: () => SUBPROTOCOL,
  });
}
