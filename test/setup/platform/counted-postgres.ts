import { TcpProxy } from './tcp-proxy.js';

/** One statement as it went over the wire. */
export interface Statement {
  /** `application_name` of its connection. */
  application: string;
  sql: string;
}

const LENGTH_BYTES = 4;
const TYPE_BYTES = 1;
/** Protocol version before the parameters of the first message. */
const VERSION_BYTES = 4;

/** Reads what one client says to a Postgres server (protocol 3.0): simple queries, and executions of prepared statements. */
function frontendReader(onStatement: (statement: Statement) => void): (chunk: Buffer) => void {
  const prepared = new Map<string, string>();
  let rest = Buffer.alloc(0);
  let application: string | undefined;
  let bound = '';
  /** The next whole message; the first has no type byte. */
  const take = () => {
    const header = application === undefined ? 0 : TYPE_BYTES;
    if (rest.length < header + LENGTH_BYTES) return undefined;
    const end = header + rest.readInt32BE(header);
    if (rest.length < end) return undefined;
    const message = { type: String.fromCharCode(rest[0] as number), body: rest.subarray(header + LENGTH_BYTES, end) };
    rest = rest.subarray(end);
    return message;
  };
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (let message = take(); message; message = take()) {
      const { type, body } = message;
      const words = body.toString().split('\0');
      if (application === undefined) {
        const parameters = body.subarray(VERSION_BYTES).toString().split('\0');
        application = parameters[parameters.indexOf('application_name') + 1] ?? '';
      } else if (type === 'Q') onStatement({ application, sql: words[0] ?? '' });
      else if (type === 'P') prepared.set(words[0] ?? '', words[1] ?? '');
      else if (type === 'B') bound = words[1] ?? '';
      else if (type === 'E') onStatement({ application, sql: prepared.get(bound) ?? bound });
    }
  };
}

/** A proxy of a database that notes every statement that passes. `take`: what passed since the last call. */
export async function countedPostgres(databaseUrl: string): Promise<{ url: string; take(): Statement[] }> {
  const statements: Statement[] = [];
  const reader = () => frontendReader((statement) => statements.push(statement));
  const proxy = await TcpProxy.to(databaseUrl, { reader });
  return { url: proxy.urlOf(databaseUrl), take: () => statements.splice(0) };
}
