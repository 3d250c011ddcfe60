import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { HeartbeatPayload } from '../../contracts/agents.js';
import { LIMITS } from '../../contracts/limits.js';
import type { AgentProfile } from '../agent/profile.js';
import type { RunTask } from '../agent/run-dispatch.js';
import type { ToolCaller } from '../agent/tool-caller.js';
import type { ToolHandlers } from '../agent/tool-handlers.js';
import type { PlatformApi } from '../client/platform-api.js';
import type { AgentLog } from '../log.js';
import { HostedTasks } from './hosted-tasks.js';
import { createHostedServer } from './http-server.js';
import { Membership } from './membership.js';
import { platformTokenCheck } from './platform-token.js';
import { PostedToolCalls } from './posted-tool-calls.js';
import { answerRpc } from './rpc-server.js';

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
  readonly #closing = new AbortController();
  #verify: ReturnType<typeof platformTokenCheck> = () => Promise.reject(new Error('not registered yet'));
  #membership: Membership | null = null;
  #status: NonNullable<HeartbeatPayload['status']> = 'available';
  #publicUrl = '';
  #onClosed: (reason?: Error) => void = () => undefined;

  constructor(parts: HostedAgentParts, options: ServeOptions) {
    this.#parts = parts;
    this.#options = options;
    this.tools = new PostedToolCalls(parts.api, () => this.instanceId);
    this.#tasks = new HostedTasks({ ...parts, tools: this.tools });
    this.#server = createHostedServer({
      card: () => parts.profile.card(this.#publicUrl),
      verify: (authorization) => this.#verify(authorization),
      answer: (body, reply) => answerRpc(this.#tasks, body, reply),
      onFailure: (error) => parts.log.error({ error: String(error) }, 'a request failed'),
    });
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
    await once(this.#server.listen(port, host), 'listening');
    const place = host.includes(':') ? `[${host}]` : host;
    this.#publicUrl = publicUrl ?? `http://${place}:${(this.#server.address() as AddressInfo).port}/`;
    if (registered) {
      const jwks_url = `${this.#parts.api.baseUrl}/.well-known/jwks.json`;
      const { tenantId: tenant_id, instanceId: instance_id } = registered;
      this.#verify = platformTokenCheck({ jwks_url, tenant_id, instance_id });
    } else await Promise.race([this.#join(), this.closed]);
    return this.#publicUrl;
  }

  /** Tells the platform at once, and with every heartbeat. */
  reportStatus(status: NonNullable<HeartbeatPayload['status']>): void {
    this.#status = status;
    this.#membership?.tell();
  }

  /** Says that it wants nothing new, finishes what runs, and stops listening. */
  async close(graceSeconds: number = LIMITS.closeGraceSecondsDefault): Promise<void> {
    if (!this.#closing.signal.aborted) {
      this.#closing.abort();
      this.#status = 'draining';
      // A platform that does not hear of it finds out by itself.
      await this.#membership?.beat().catch((error: unknown) => {
        this.#parts.log.warn({ error: String(error) }, 'the platform was not told that the agent stops');
      });
      const grace = new AbortController();
      await Promise.race([this.#tasks.idle(), delay(graceSeconds * 1000, undefined, { signal: grace.signal })]);
      grace.abort();
      this.#stop();
    }
    await this.closed;
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
          this.#verify = platformTokenCheck(platform);
          resolve();
        },
      });
      this.#membership = membership;
      membership.stay(this.#closing.signal).catch((reason: Error) => this.#stop(reason));
    });
  }

  #stop(reason?: Error): void {
    this.#closing.abort();
    this.#tasks.abortAll('AGENT_DISCONNECTED');
    this.#server.close(() => this.#onClosed(reason));
    this.#server.closeIdleConnections();
    setTimeout(() => this.#server.closeAllConnections(), CUT_MS).unref();
  }
}

/** For the last bytes of an answer to leave. */
const CUT_MS = 1_000;
