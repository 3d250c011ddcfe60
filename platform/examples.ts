import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Db } from '../db/pool.js';
import type { Logger } from '../runtime/logger.js';

export const EXAMPLES = ['concierge', 'librarian'];
/** The example that receives messages without a target. */
export const DEFAULT_EXAMPLE = 'concierge';
/** Environment variables that an example agent inherits: no keys, and no addresses of the platform's servers. */
const SHARED = /^(PATH|HOME|LANG|TZ|NODE_EXTRA_CA_CERTS|LLM_|EXAMPLE_|(HTTPS?|NO)_PROXY$)/i;
const RESTART_MIN_MS = 1_000;
const RESTART_MAX_MS = 30_000;
const STOP_MS = 5_000;
const REGISTERED_TIMEOUT_MS = 10_000;
const REGISTERED_POLL_MS = 50;

/** An example agent in a child process. It connects like any other agent, and is restarted when it exits. */
class Example {
  #child: ChildProcess | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #waitMs = RESTART_MIN_MS;

  constructor(
    private readonly name: string,
    private readonly environment: NodeJS.ProcessEnv,
    private readonly logFile: string,
    private readonly log: Logger,
  ) {}

  start(): void {
    const program = fileURLToPath(new URL(`../examples/${this.name}.js`, import.meta.url));
    const output = openSync(this.logFile, 'a', 0o600);
    // The agent's standard input is a pipe: it closes when this process dies, and the agent exits.
    const child = spawn(process.execPath, [program], {
      env: this.environment,
      stdio: ['pipe', output, output],
      detached: true,
    });
    closeSync(output);
    this.#child = child;
    const startedAt = Date.now();
    child.once('error', (error) =>
      this.log.error({ example: this.name, err: error.message }, 'an example agent did not start'),
    );
    child.once('exit', (code, signal) => {
      this.#child = undefined;
      if (this.#stopped) return;
      if (Date.now() - startedAt > RESTART_MAX_MS) this.#waitMs = RESTART_MIN_MS;
      this.log.warn(
        { example: this.name, code, signal, restart_in_ms: this.#waitMs },
        'an example agent exited and will be restarted',
      );
      this.#timer = setTimeout(() => this.start(), this.#waitMs);
      this.#waitMs = Math.min(RESTART_MAX_MS, this.#waitMs * 2);
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill('SIGTERM');
    const kill = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await ended;
    clearTimeout(kill);
  }
}

/** Starts the example agents with the given environment. */
export function startExamples(options: { dataDir: string; environment: Record<string, string>; log: Logger }): {
  stop(): Promise<void>;
} {
  const shared = Object.entries(process.env).filter(([name]) => SHARED.test(name));
  const environment = { ...Object.fromEntries(shared), ...options.environment };
  const examples = EXAMPLES.map(
    (name) => new Example(name, environment, join(options.dataDir, 'logs', `${name}.log`), options.log),
  );
  for (const example of examples) example.start();
  return {
    stop: async () => {
      await Promise.all(examples.map((example) => example.stop()));
    },
  };
}

/** Waits up to ten seconds until the example agents are registered, so that a first message reaches them. */
export async function untilRegistered(db: Db, tenantId: string): Promise<void> {
  const deadline = Date.now() + REGISTERED_TIMEOUT_MS;
  const registered = () =>
    db.tenant(tenantId, (tx) =>
      tx.query(
        'SELECT DISTINCT agent_type FROM agents WHERE tenant_id = $1 AND agent_type = ANY ($2) AND deregistered_at IS NULL',
        [tenantId, EXAMPLES],
      ),
    );
  while (Date.now() < deadline && (await registered()).length < EXAMPLES.length) await delay(REGISTERED_POLL_MS);
}
