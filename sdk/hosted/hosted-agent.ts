import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, Server as NetServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { HeartbeatPayload } from '../../contracts/agents.js';
import { LIMITS } from '../../contracts/limits.js';
import type { AgentProfile } from '../agent/agent-profile.js';
import type { RunTask } from '../handlers/run-handler.js';
import type { ToolCaller } from '../tools/tool-caller.js';
import type { ToolHandlers } from '../tools/tool-handlers.js';
import type { TroubleReporter } from '../agent/error-reporter.js';
import type { PlatformApi } from '../client/platform-api.js';
import type { AgentLog } from '../log.js';
import { settledWithin } from '../time-limit.js';
import { HostedTasks } from './hosted-tasks.js';
import { createHostedServer } from './http-server.js';
import { Membership } from './membership.js';
import { PostedToolCalls } from './posted-tool-calls.js';
import { answerRpc, type Reply } from './rpc-server.js';
import { TokenVerifier } from './token-verifier.js';

export interface ServeOptions {
  /** A free one by default. */
  port?: number;
  /** `127.0.0.1` by default. */
  host?: string;
  /** Where the platform reaches this server; `http://{host}:{port}/` by default. */
  publicUrl?: string;
  /** Already registered, by whoever else: the agent does not register itself, and sends no heartbeats. */
  registered?: { tenantId: string; instanceId: string };
}

export interface HostedAgentParts {
  api: PlatformApi;
  profile: AgentProfile;
  runTask: RunTask;
  toolHandlers: ToolHandlers;
  log: AgentLog;
  troubles: TroubleReporter;
}

/** An agent that the mesh posts its work to. */
export class HostedAgent {
  readonly tools: ToolCaller;
  /** Settles after `close()`; rejects with `AgentStoppedError` when the platform refused the agent. */
  readonly closed: Promise<void>;
  readonly #parts: HostedAgentParts;
  readonly #options: ServeOptions;
  readonly #tasks: HostedTasks;
  readonly #server: Server;
  readonly #serverClosed: Promise<void>;
  /** Answers to the platform that have not left yet. */
  readonly #answering = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  readonly #verifier: TokenVerifier;
  #membership: Membership | null = null;
  #status: NonNullable<HeartbeatPayload['status']> = 'available';
  #publicUrl = '';
  #onClosed: (reason?: Error) => void = () => undefined;

  constructor(parts: HostedAgentParts, options: ServeOptions) {
    this.#parts = parts;
    this.#options = options;
    this.tools = new PostedToolCalls(parts.api, () => this.instanceId);
    this.#tasks = new HostedTasks({ ...parts, tools: this.tools });
    this.#verifier = new TokenVerifier(parts.api.ca, parts.log);
    this.#server = createHostedServer({
      card: () => parts.profile.card(this.#publicUrl),
      verify: (authorization) => this.#verifier.verify(authorization),
      isDraining: () => this.#closing.signal.aborted,
      answer: (body, reply) => this.#answer(body, reply),
      onFailure: (error) => parts.log.error({ error: String(error) }, 'a request failed'),
    });
    this.#serverClosed = new Promise((resolve) => void this.#server.once('close', resolve));
    this.closed = new Promise((resolve, reject) => {
      this.#onClosed = (reason) => (reason ? reject(reason) : resolve());
    });
    this.closed.catch(() => undefined); // whoever awaits `serve()` alone learns it there
  }

  get instanceId(): string {
    return this.#membership?.instanceId ?? this.#options.registered?.instanceId ?? '';
  }

  /** Listens, and registers. @returns where the platform reaches it. @throws AgentStoppedError when the platform refuses it */
  async start(): Promise<string> {
    const { port = 0, host = '127.0.0.1', publicUrl, registered } = this.#options;
    await once(this.#server.listen(port, host), 'listening').catch((error: Error) => {
      this.#stop(error);
      throw error;
    });
    const place = host.includes(':') ? `[${host}]` : host;
    this.#publicUrl = publicUrl ?? `http://${place}:${(this.#server.address() as AddressInfo).port}/`;
    if (registered) {
      const jwks_url = `${this.#parts.api.baseUrl}/.well-known/jwks.json`;
      const { tenantId: tenant_id, instanceId: instance_id } = registered;
      this.#verifier.trust({ jwks_url, tenant_id, instance_id });
    } else await Promise.race([this.#join(), this.closed]);
    return this.#publicUrl;
  }

  /** Tells the platform at once, and with every heartbeat. An agent that is on its way out stays `draining`. */
  reportStatus(status: NonNullable<HeartbeatPayload['status']>): void {
    if (this.#closing.signal.aborted) return;
    this.#status = status;
    this.#membership?.tell();
  }

  /**
   * Says that it wants nothing new, finishes what runs and what was on its way, and stops listening. Nothing that the platform sends
   * meets a closing socket: it counts a request that broke as sent, and its message as lost.
   */
  async close(graceSeconds: number = LIMITS.closeGraceSecondsDefault): Promise<void> {
    if (!this.#closing.signal.aborted) {
      this.#closing.abort();
      this.#status = 'draining';
      const graceMs = graceSeconds * 1000;
      const endsAtMs = performance.now() + graceMs;
      await settledWithin(this.#sayDraining(), Math.max(graceMs, TELL_MS));
      await settledWithin(this.#drained(this.#membership ? ROUTED_MS : 0), Math.max(0, endsAtMs - performance.now()));
      // `http.Server.close()` would cut a connection that is open and whose request is still to come.
      NetServer.prototype.close.call(this.#server);
      await settledWithin(this.#drained(ACCEPTED_MS), Math.max(0, endsAtMs - performance.now()));
      this.#stop();
    }
    await this.closed;
  }

  async #answer(body: string, reply: Reply): Promise<void> {
    const left = reply.left.then(() => void this.#answering.delete(left));
    this.#answering.add(left);
    await answerRpc(this.#tasks, body, reply);
  }

  /** A platform that does not hear of it finds out by itself. */
  async #sayDraining(): Promise<void> {
    await this.#membership?.leave().catch((error: unknown) => {
      this.#parts.log.warn({ error: String(error) }, 'the platform was not told that the agent stops');
    });
  }

  /** Settles when nothing runs and nothing has come for `quietMs`. */
  async #drained(quietMs: number): Promise<void> {
    for (let seen = -1; seen !== this.#tasks.startedCount; ) {
      await Promise.all([this.#tasks.idle(), ...this.#answering]);
      seen = this.#tasks.startedCount;
      await delay(this.#tasks.owesOutcome ? POLLED_MS : quietMs, undefined, { ref: false });
    }
  }

  /** Settles at the first registration. */
  #join(): Promise<void> {
    return new Promise((resolve) => {
      const membership = new Membership({
        ...this.#parts,
        publicUrl: this.#publicUrl,
        heartbeat: () => ({
          status: this.#status,
          current_sessions: this.#tasks.sessionCount,
          max_concurrent_sessions: this.#parts.profile.maxConcurrentSessions,
        }),
        onRegistered: (platform) => {
          this.#verifier.trust(platform);
          resolve();
        },
      });
      this.#membership = membership;
      membership.stay(this.#closing.signal).catch((reason: Error) => this.#refused(reason));
    });
  }

  /** Finishes what runs; nothing new comes to an agent that is not registered. */
  async #refused(reason: Error): Promise<void> {
    if (this.#closing.signal.aborted) return; // `close()` ends it
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

/** For the platform to hear that the agent stops, where there is no grace. */
const TELL_MS = 1_000;
/** For what was routed here before the platform knew; longer than it keeps a connection that is idle. */
const ROUTED_MS = 1_500;
/** For the requests of connections that were opened last. */
const ACCEPTED_MS = 250;
/** Longer than the platform pauses between two looks at a task whose connection broke. */
const POLLED_MS = 6_000;
/** For the last bytes of an answer to leave. */
const CUT_MS = 1_000;
