import { Console } from 'node:console';

/** The logger interface; a pino logger fits. */
export interface AgentLog {
  debug(fields: object, text: string): void;
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

/** A logger that discards everything. */
export const SILENT_LOG: AgentLog = { debug() {}, info() {}, warn() {}, error() {} };

/** Control characters are removed: logged values may come from other programs. */
const CONTROL = /\p{Cc}+/gu;

/** The default logger: one line on standard error for each info, warning and error. @param name prefix of each line */
export function stderrLog(name: string): AgentLog {
  const stderr = new Console(process.stderr); // a Console ignores write errors, for example when the reader has closed the pipe
  const write = (fields: object, text: string) => {
    const { error, ...rest } = fields as Record<string, unknown>;
    const shownFields = Object.entries(rest).filter(([, value]) => value !== undefined && value !== '');
    const suffix = shownFields.map(([key, value]) => `${key}=${String(value)}`).join(' ');
    const line = `${name}: ${text}${error ? `: ${String(error)}` : ''}${suffix && ` (${suffix})`}`;
    stderr.error('%s', line.replace(CONTROL, ' '));
  };
  return { debug() {}, info: write, warn: write, error: write };
}
