import { type Logger, pino } from 'pino';

export type { Logger };

/** Fields that are redacted, also one level down. */
const SECRETS = ['authorization', 'client_secret', 'token', 'callback_token', 'resume_token', 'secret', 'password'];

/**
 * The logger of the process: one JSON object per line. Tokens and secrets are redacted by the names of their fields.
 * @param options.level pino level, `info` by default; `silent` writes nothing
 * @param options.file a path to append to; standard error when absent
 */
export function createLogger(options: { level?: string; file?: string } = {}): Logger {
  const destination = pino.destination(
    options.file ? { dest: options.file, mkdir: true, sync: false, mode: 0o600 } : { dest: 2, sync: true },
  );
  return pino(
    {
      level: options.level ?? 'info',
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRETS.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' },
    },
    destination,
  );
}
