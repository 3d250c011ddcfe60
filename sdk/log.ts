/** A logger in the manner of pino. */
export interface AgentLog {
  debug(fields: object, text: string): void;
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

/** Says nothing. */
export const SILENT_LOG: AgentLog = { debug() {}, info() {}, warn() {}, error() {} };
