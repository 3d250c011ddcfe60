import { type Logger, pino } from 'pino';
import { LogDestination } from './log-destination.js';

export type { Logger };

/** Fields that are redacted, also one level down. */
const SECRETS = ['authorization', 'client_secret', 'token', 'callback_token', 'resume_token', 'secret', 'password'];

/** How many lines a log has of the levels that mean trouble, and how many could not be written. */
export interface LogCounts {
  lines: Record<'warn' | 'error' | 'fatal', number>;
  dropped: () => number;
}

/** All counts at 0. `dropped` is set by the logger that counts. */
export function newLogCounts(): LogCounts {
  return { lines: { warn: 0, error: 0, fatal: 0 }, dropped: () => 0 };
}

/**
 * The logger of the process: one JSON object per line. Tokens and secrets are redacted by the names of their fields.
 * @param options.level pino level, `info` by default; `silent` writes nothing
 * @param options.file a path to append to; standard error when absent
 * @param options.counts counts its lines, those of child loggers included
 */
export function createLogger(options: { level?: string; file?: string; counts?: LogCounts } = {}): Logger {
  const { counts } = options;
  const destination = new LogDestination(options.file);
  if (counts) counts.dropped = () => destination.dropped;
  const log = pino(
    {
      level: options.level ?? 'info',
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: {
        logMethod(args, method, level) {
          const name = pino.levels.labels[level];
          if (counts && name !== undefined && name in counts.lines) counts.lines[name as keyof LogCounts['lines']] += 1;
          method.apply(this, args);
        },
      },
      redact: { paths: SECRETS.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' },
    },
    destination,
  );
  destination.onRecovered = (dropped) => log.warn({ dropped }, 'the log can be written again; lines were dropped');
  return log;
}
