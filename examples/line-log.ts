import type { AgentLog } from '../sdk/index.js';

/** Logs of an example: one plain line each, on standard output. */
export function lineLog(name: string): AgentLog {
  const write = (level: string) => (fields: object, text: string) => {
    const facts = Object.entries(fields).filter(([, value]) => value !== undefined && value !== '');
    process.stdout.write(
      `${name} ${level} ${text} ${facts.map(([key, value]) => `${key}=${String(value)}`).join(' ')}\n`,
    );
  };
  return { debug() {}, info: write('info'), warn: write('warn'), error: write('error') };
}
