import pg from 'pg';

/** The columns of a row as Postgres writes them in text. */
type Fields = (string | null)[];

/** One statement that is a whole transaction, and how its rows read. */
export interface Statement<Row> {
  /** Each connection parses and plans it once under this name. */
  name: string;
  text: string;
  /** @param fields in the order of the statement */
  row(fields: Fields): Row;
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
 * columns, which are known, and copies nothing: much of what the process spends on a short statement.
 */
export class Execution implements pg.Submittable {
  readonly name: string;
  readonly text: string;
  /** Called once, with the fields of each row; the driver puts its time limit around it. */
  callback: (error: unknown, rows?: Fields[]) => void;
  readonly #values: string[];
  readonly #rows: Fields[] = [];

  constructor(
    { name, text }: Pick<Statement<unknown>, 'name' | 'text'>,
    values: string[],
    callback: (error: unknown, rows?: Fields[]) => void,
  ) {
    this.name = name;
    this.text = text;
    this.#values = values;
    this.callback = callback;
  }

  submit(connection: unknown): void {
    const wire = connection as Wire;
    wire.stream.cork();
    try {
      if (wire.parsedStatements[this.name] === undefined) wire.parse({ name: this.name, text: this.text });
      wire.bind({ statement: this.name, values: this.#values });
      wire.execute({});
      wire.sync();
    } finally {
      wire.stream.uncork();
    }
  }

  handleDataRow({ fields }: { fields: Fields }): void {
    this.#rows.push(fields);
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
