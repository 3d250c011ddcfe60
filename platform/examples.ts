import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Db } from '../db/pool.js';
import { errorMessage } from '../runtime/errors.js';
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

/** Runs an example agent in a child process. It connects like any other agent, and is restarted when it exits, until `stopping` aborts. */
async function runExample(
  example: string,
  env: NodeJS.ProcessEnv,
  logFile: string,
  log: Logger,
  stopping: AbortSignal,
): Promise<void> {
  const program = fileURLToPath(new URL(`../examples/${example}.js`, import.meta.url));
  let waitMs = RESTART_MIN_MS;
  while (!stopping.aborted) {
    const startedAt = Date.now();
    const output = openSync(logFile, 'a', 0o600);
    // The agent's standard input is a pipe: it closes when this process dies, and the agent exits.
    const child = spawn(process.execPath, [program], { env, stdio: ['pipe', output, output], detached: true });
    closeSync(output);
    const stop = () => {
      child.kill('SIGTERM');
      setTimeout(() => child.kill('SIGKILL'), STOP_MS).unref();
    };
    stopping.addEventListener('abort', stop);
    const [code, signal] = await once(child, 'exit');
    stopping.removeEventListener('abort', stop);
    if (stopping.aborted) return;
    if (Date.now() - startedAt > RESTART_MAX_MS) waitMs = RESTART_MIN_MS;
    log.warn({ example, code, signal, restart_in_ms: waitMs }, 'an example agent exited and will be restarted');
    await delay(waitMs, undefined, { signal: stopping }).catch(() => undefined); // aborted by a stop
    waitMs = Math.min(RESTART_MAX_MS, waitMs * 2);
  }
}

/** Starts the example agents with the given environment. */
export function startExamples(options: { dataDir: string; environment: Record<string, string>; log: Logger }) {
  const { dataDir, environment, log } = options;
  const stopping = new AbortController();
  const shared = Object.entries(process.env).filter(([name]) => SHARED.test(name));
  const env = { ...Object.fromEntries(shared), ...environment };
  for (const example of EXAMPLES) closeSync(openSync(join(dataDir, 'logs', `${example}.log`), 'a', 0o600)); // fails here, not later
  const running = EXAMPLES.map((example) =>
    runExample(example, env, join(dataDir, 'logs', `${example}.log`), log, stopping.signal).catch((error: unknown) =>
      log.error({ example, err: errorMessage(error) }, 'an example agent did not start'),
    ),
  );
  return {
    stop: async (): Promise<void> => {
      stopping.abort();
      await Promise.all(running);
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
