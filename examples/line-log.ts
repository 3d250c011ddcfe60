import type { AgentLog } from '../sdk/index.js';

/** A logger that writes plain lines to standard output. */
export function lineLog(name: string): AgentLog {
  const write = (level: string) => (fields: object, text: string) => {
    const shownFields = Object.entries(fields).filter(([, value]) => value !== undefined && value !== '');
    process.stdout.write(
      `${name} ${level} ${text} ${shownFields.map(([key, value]) => `${key}=${String(value)}`).join(' ')}\n`,
    );
  };
  return { debug() {}, info: write('info'), warn: write('warn'), error: write('error') };
}
