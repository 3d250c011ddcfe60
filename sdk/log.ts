import { Console } from 'node:console';

/** A logger in the manner of pino. */
export interface AgentLog {
  debug(fields: object, text: string): void;
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

/** Says nothing. */
export const SILENT_LOG: AgentLog = { debug() {}, info() {}, warn() {}, error() {} };

/** Control characters: what a line shows may come from elsewhere. */
const CONTROL = /\p{Cc}+/gu;

/** Warnings and errors on standard error, a line each; what is used when no log is given. @param name what each line begins with */
export function stderrLog(name: string): AgentLog {
  const stderr = new Console(process.stderr); // unlike a bare write it outlives a reader that is gone
  const write = (fields: object, text: string) => {
    const { error, ...rest } = fields as Record<string, unknown>;
    const facts = Object.entries(rest).filter(([, value]) => value !== undefined && value !== '');
    const shown = facts.map(([key, value]) => `${key}=${String(value)}`).join(' ');
    const line = `${name}: ${text}${error ? `: ${String(error)}` : ''}${shown && ` (${shown})`}`;
    stderr.error('%s', line.replace(CONTROL, ' '));
  };
  return { debug() {}, info() {}, warn: write, error: write };
}
