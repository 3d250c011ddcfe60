import { type Logger, pino } from 'pino';

export type { Logger };

/** Fields that are redacted, also one level down. */
const SECRETS = ['authorization', 'client_secret', 'token', 'callback_token', 'resume_token', 'secret', 'password'];

/** How many lines each level of a log has, of those that stand for trouble. */
export type LogCounts = Record<'warn' | 'error' | 'fatal', number>;

export function newLogCounts(): LogCounts {
  return { warn: 0, error: 0, fatal: 0 };
}

/**
 * The logger of the process: one JSON object per line. Tokens and secrets are redacted by the names of their fields.
 * @param options.level pino level, `info` by default; `silent` writes nothing
 * @param options.file a path to append to; standard error when absent
 * @param options.counts counts its lines, those of child loggers included
 */
export function createLogger(options: { level?: string; file?: string; counts?: LogCounts } = {}): Logger {
  const { counts } = options;
  const destination = pino.destination(
    options.file ? { dest: options.file, mkdir: true, sync: false, mode: 0o600 } : { dest: 2, sync: true },
  );
  return pino(
    {
      level: options.level ?? 'info',
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: {
        logMethod(args, method, level) {
          const name = pino.levels.labels[level];
          if (counts && name !== undefined && name in counts) counts[name as keyof LogCounts] += 1;
          method.apply(this, args);
        },
      },
      redact: { paths: SECRETS.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' },
    },
    destination,
  );
}
