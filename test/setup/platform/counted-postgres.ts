import { TcpProxy } from './tcp-proxy.js';

/** One statement as it went over the wire. */
export interface Statement {
  /** `application_name` of its connection. */
  application: string;
  sql: string;
  /** Its text came with it; otherwise the server had it prepared. */
  parsed: boolean;
}

const LENGTH_BYTES = 4;
const TYPE_BYTES = 1;
/** Protocol version before the parameters of the first message. */
const VERSION_BYTES = 4;

/** Reads what one client says to a Postgres server (protocol 3.0): simple queries, and executions of prepared statements. */
class FrontendReader {
  readonly #onStatement: (statement: Statement) => void;
  readonly #prepared = new Map<string, string>();
  #rest = Buffer.alloc(0);
  #application: string | undefined;
  #bound = '';
  #parsed = false;

  constructor(onStatement: (statement: Statement) => void) {
    this.#onStatement = onStatement;
  }

  read(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    for (let message = this.#take(); message; message = this.#take()) this.#message(message);
  }

  /** The next whole message; the first has no type byte. */
  #take(): { type: string; body: Buffer } | undefined {
    const header = this.#application === undefined ? 0 : TYPE_BYTES;
    if (this.#rest.length < header + LENGTH_BYTES) return undefined;
    const end = header + this.#rest.readInt32BE(header);
    if (this.#rest.length < end) return undefined;
    const type = header === 0 ? 'startup' : String.fromCharCode(this.#rest[0] as number);
    const body = this.#rest.subarray(header + LENGTH_BYTES, end);
    this.#rest = this.#rest.subarray(end);
    return { type, body };
  }

  #message({ type, body }: { type: string; body: Buffer }): void {
    if (type === 'startup') {
      const words = body.subarray(VERSION_BYTES).toString().split('\0');
      this.#application = words[words.indexOf('application_name') + 1] ?? '';
    }
    if (type === 'Q') this.#ran(body.toString('utf8', 0, body.length - 1), true);
    if (type === 'P') {
      const [name = '', sql = ''] = body.toString().split('\0');
      this.#prepared.set(name, sql);
      this.#parsed = true;
    }
    if (type === 'B') this.#bound = body.toString().split('\0')[1] ?? '';
    if (type === 'E') {
      this.#ran(this.#prepared.get(this.#bound) ?? this.#bound, this.#parsed);
      this.#parsed = false;
    }
  }

  #ran(sql: string, parsed: boolean): void {
    this.#onStatement({ application: this.#application ?? '', sql, parsed });
  }
}

/** A proxy of a database that notes every statement that passes. */
export class CountedPostgres {
  /** The database's URL by way of the proxy. */
  readonly url: string;
  readonly close: () => void;
  readonly #statements: Statement[];

  private constructor(url: string, statements: Statement[], close: () => void) {
    this.url = url;
    this.#statements = statements;
    this.close = close;
  }

  static async to(databaseUrl: string): Promise<CountedPostgres> {
    const statements: Statement[] = [];
    const reader = () => {
      const frontend = new FrontendReader((statement) => statements.push(statement));
      return (chunk: Buffer) => frontend.read(chunk);
    };
    const proxy = await TcpProxy.to(databaseUrl, { reader });
    return new CountedPostgres(proxy.urlOf(databaseUrl), statements, () => proxy.close());
  }

  /** What passed since the last call. */
  take(): Statement[] {
    return this.#statements.splice(0);
  }
}
