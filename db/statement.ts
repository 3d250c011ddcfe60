import pg from 'pg';

/** One statement that is a whole transaction, and how its rows read. */
export interface Statement<Row> {
  /** Each connection parses and plans it once under this name. */
  name: string;
  text: string;
  /** @param fields the columns as Postgres writes them in text, in the order of the statement */
  row(fields: (string | null)[]): Row;
}

const parseTime = pg.types.getTypeParser(pg.types.builtins.TIMESTAMPTZ, 'text');

/** A `timestamptz` that is not NULL, as Postgres writes it. */
export function timeOf(field: string | null | undefined): Date {
  return parseTime(field ?? '') as Date;
}

/** What the driver's connection has for whoever writes the protocol's messages; its types know other arguments. */
interface Wire {
  stream: { cork(): void; uncork(): void };
  parsedStatements: Record<string, string | undefined>;
  parse(message: { name: string; text: string }): void;
  bind(message: { statement: string; values: string[] }): void;
  execute(message: Record<string, never>): void;
  sync(): void;
}

/**
 * One execution of a statement, over the driver's door for queries of one's own. Unlike its `Query` it asks for no description of the
 * columns, which are known, and copies nothing: half of what the process spends on a short statement.
 */
export class Execution<Row> implements pg.Submittable {
  readonly name: string;
  readonly text: string;
  /** Called once; the driver puts its time limit around it. */
  callback: (error: unknown, rows?: Row[]) => void;
  readonly #values: string[];
  readonly #row: (fields: (string | null)[]) => Row;
  readonly #rows: Row[] = [];

  constructor({ name, text, row }: Statement<Row>, values: string[], callback: (error: unknown, rows?: Row[]) => void) {
    this.name = name;
    this.text = text;
    this.#row = row;
    this.#values = values;
    this.callback = callback;
  }

  submit(connection: unknown): void {
    const wire = connection as Wire;
    wire.stream.cork();
    if (wire.parsedStatements[this.name] === undefined) wire.parse({ name: this.name, text: this.text });
    wire.bind({ statement: this.name, values: this.#values });
    wire.execute({});
    wire.sync();
    wire.stream.uncork();
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    this.#rows.push(this.#row(fields));
  }

  /** Rows are counted by who asked. */
  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.callback(null, this.#rows);
  }

  handleError(error: unknown): void {
    this.callback(error);
  }
}
