import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, Server as NetServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { HeartbeatPayload } from '../../contracts/api/agents.js';
import { LIMITS } from '../../contracts/limits.js';
import type { AgentProfile } from '../agent/agent-profile.js';
import type { ErrorReporter } from '../agent/error-reporter.js';
import { LifecycleLog } from '../agent/lifecycle-log.js';
import { settledWithin } from '../bounded-wait.js';
import type { PlatformApi } from '../client/api/platform-api.js';
import type { RunTask } from '../handlers/run-dispatch.js';
import type { AgentLog } from '../log.js';
import type { ToolCaller } from '../tools/tool-caller.js';
import type { ToolHandlers } from '../tools/tool-handlers.js';
import { HostedTasks } from './hosted-tasks.js';
import { createHostedServer } from './http-server.js';
import { Membership } from './membership.js';
import { PostedToolCalls } from './posted-tool-calls.js';
import { answerRpc, type Reply } from './rpc-server.js';
import { TokenVerifier } from './token-verifier.js';

export interface ServeOptions {
  /** Port to listen on; a free one by default. */
  port?: number;
  /** Address to listen on; `127.0.0.1` by default. */
  host?: string;
  /** Address at which the platform reaches this server; `http://{host}:{port}/` by default. */
  publicUrl?: string;
  /** For an instance that is registered by another program: the agent does not register itself and sends no heartbeats. */
  registered?: { tenantId: string; instanceId: string };
}

export interface HostedAgentDeps {
  api: PlatformApi;
  /** Certificate authority of the platform in PEM. */
  ca: string | undefined;
  profile: AgentProfile;
  retryPauseMs: number | undefined;
  runTask: RunTask;
  toolHandlers: ToolHandlers;
  log: AgentLog;
  errorReporter: ErrorReporter;
}

/** Hosts that stand for every address of a machine. */
const ANY_ADDRESS = new Set(['0.0.0.0', '::', '']);

/** A hosted agent: an HTTP server that the mesh posts dispatches to. */
export class HostedAgent {
  readonly tools: ToolCaller;
  /** Resolves after `close()`; rejects with `AgentStoppedError` when the platform refused the agent. */
  readonly closed: Promise<void>;
  readonly #deps: HostedAgentDeps;
  readonly #lifecycle: LifecycleLog;
  readonly #options: ServeOptions;
  readonly #tasks: HostedTasks;
  readonly #server: Server;
  readonly #serverClosed: Promise<void>;
  /** Answers that have not been sent completely yet. */
  readonly #answering = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  readonly #verifier: TokenVerifier;
  #membership: Membership | null = null;
  #status: NonNullable<HeartbeatPayload['status']> = 'available';
  #publicUrl = '';
  #onClosed: (reason?: Error) => void = () => undefined;

  constructor(deps: HostedAgentDeps, options: ServeOptions) {
    this.#deps = deps;
    this.#lifecycle = new LifecycleLog(deps);
    this.#options = options;
    this.tools = new PostedToolCalls(deps.api, () => this.instanceId);
    this.#tasks = new HostedTasks({ ...deps, tools: this.tools });
    this.#verifier = new TokenVerifier(deps.ca, deps.log);
    this.#server = createHostedServer({
      card: () => deps.profile.card(this.#publicUrl),
      verify: (authorization) => this.#verifier.verify(authorization),
      isDraining: () => this.#closing.signal.aborted,
      answer: (body, reply) => this.#answer(body, reply),
      onFailure: (error) => deps.log.error({ error: String(error) }, 'a request failed'),
    });
    this.#serverClosed = new Promise((resolve) => void this.#server.once('close', resolve));
    this.closed = new Promise((resolve, reject) => {
      this.#onClosed = (reason) => (reason ? reject(reason) : resolve());
    });
    this.closed.catch(() => undefined); // a program that awaits only `serve()` gets the error there
  }

  get instanceId(): string {
    return this.#membership?.instanceId ?? this.#options.registered?.instanceId ?? '';
  }

  /** Listens and registers. @returns the public address. @throws AgentStoppedError when the platform refuses the agent */
  async start(): Promise<string> {
    const { port = 0, host = '127.0.0.1', publicUrl, registered } = this.#options;
    if (publicUrl === undefined && ANY_ADDRESS.has(host))
      throw new Error(`serve: host ${host} is no address that the platform can call: set publicUrl`);
    await once(this.#server.listen(port, host), 'listening').catch((error: Error) => {
      this.#stop(error);
      throw error;
    });
    const urlHost = host.includes(':') ? `[${host}]` : host;
    this.#publicUrl = publicUrl ?? `http://${urlHost}:${(this.#server.address() as AddressInfo).port}/`;
    if (registered) {
      const jwks_url = `${this.#deps.api.baseUrl}/.well-known/jwks.json`;
      const { tenantId: tenant_id, instanceId: instance_id } = registered;
      this.#verifier.trust({ jwks_url, tenant_id, instance_id });
    } else await Promise.race([this.#join(), this.closed]);
    return this.#publicUrl;
  }

  /** Reports a status at once and with every heartbeat. A closing agent stays `draining`. */
  reportStatus(status: NonNullable<HeartbeatPayload['status']>): void {
    if (this.#closing.signal.aborted) return;
    this.#status = status;
    this.#membership?.heartbeatNow();
  }

  /**
   * Reports `draining`, finishes running and arriving dispatches, then stops listening. The server keeps accepting requests meanwhile: the
   * platform counts a broken request as sent, and its message as lost.
   */
  async close(graceSeconds: number = LIMITS.closeGraceSecondsDefault): Promise<void> {
    if (!this.#closing.signal.aborted) {
      this.#closing.abort();
      this.#status = 'draining';
      this.#lifecycle.draining(graceSeconds);
      const graceMs = graceSeconds * 1000;
      const endsAtMs = performance.now() + graceMs;
      await settledWithin(this.#reportDraining(), Math.max(graceMs, DRAINING_REPORT_MS));
      await settledWithin(this.#drained(this.#membership ? ROUTED_MS : 0), Math.max(0, endsAtMs - performance.now()));
      // `http.Server.close()` would also close idle connections on which a request may be arriving.
      NetServer.prototype.close.call(this.#server);
      await settledWithin(this.#drained(ACCEPTED_MS), Math.max(0, endsAtMs - performance.now()));
      this.#stop();
    }
    await this.closed;
  }

  async #answer(body: string, reply: Reply): Promise<void> {
    const sent = reply.closed.then(() => void this.#answering.delete(sent));
    this.#answering.add(sent);
    await answerRpc(this.#tasks, body, reply);
  }

  /** A failure is only logged: the platform then notices the end by missed heartbeats. */
  async #reportDraining(): Promise<void> {
    await this.#membership?.lastHeartbeat().catch((error: unknown) => {
      this.#deps.log.warn({ error: String(error) }, 'the draining status could not be reported');
    });
  }

  /** Resolves when no dispatch runs and none has arrived for `quietMs`. */
  async #drained(quietMs: number): Promise<void> {
    for (let seen = -1; seen !== this.#tasks.startedCount; ) {
      await Promise.all([this.#tasks.idle(), ...this.#answering]);
      seen = this.#tasks.startedCount;
      await delay(this.#tasks.hasUncollectedResult ? POLLED_MS : quietMs, undefined, { ref: false });
    }
  }

  /** Resolves at the first registration. */
  #join(): Promise<void> {
    return new Promise((resolve) => {
      const membership = new Membership({
        ...this.#deps,
        lifecycle: this.#lifecycle,
        publicUrl: this.#publicUrl,
        heartbeat: () => ({
          status: this.#status,
          current_sessions: this.#tasks.sessionCount,
          ...this.#deps.profile.capacity,
        }),
        onRegistered: (platform) => {
          this.#verifier.trust(platform);
          resolve();
        },
      });
      this.#membership = membership;
      membership.run(this.#closing.signal).catch((reason: Error) => this.#refused(reason));
    });
  }

  /** Finishes running dispatches; the platform sends none to an agent that is not registered. */
  async #refused(reason: Error): Promise<void> {
    if (this.#closing.signal.aborted) return; // `close()` stops the agent
    this.#closing.abort();
    await settledWithin(this.#drained(0), LIMITS.closeGraceSecondsDefault * 1000);
    this.#stop(reason);
  }

  #stop(reason?: Error): void {
    this.#closing.abort();
    this.#verifier.close();
    this.#tasks.abortAll('AGENT_DISCONNECTED');
    void this.#serverClosed.then(() => this.#onClosed(reason));
    this.#server.close();
    setTimeout(() => this.#server.closeAllConnections(), CUT_MS).unref();
  }
}

/** Time limit for the last heartbeat when the grace period is shorter. */
const DRAINING_REPORT_MS = 1_000;
/** Wait for dispatches that were routed before the platform knew; longer than it keeps an idle connection. */
const ROUTED_MS = 1_500;
/** Wait for requests on connections that were accepted last. */
const ACCEPTED_MS = 250;
/** Longer than the interval at which the platform polls a task whose connection broke. */
const POLLED_MS = 6_000;
/** Wait for the last bytes of answers to be sent. */
const CUT_MS = 1_000;
