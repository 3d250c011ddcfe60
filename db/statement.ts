import pg from 'pg';

/** The columns of a row as Postgres writes them in text. */
type Fields = (string | null)[];

/** A statement that is a whole transaction, and the parser of its rows. */
export interface Statement<Row> {
  /** Each connection prepares it once under this name. */
  name: string;
  text: string;
  /** @param fields the columns in the order of the statement */
  row(fields: Fields): Row;
}

const parseTime = pg.types.getTypeParser(pg.types.builtins.TIMESTAMPTZ, 'text');

/** A `timestamptz` that is not NULL, as Postgres writes it. */
export function timeOf(field: string | null | undefined): Date {
  return parseTime(field ?? '') as Date;
}

/** The methods of the driver's connection that write protocol messages, with their actual arguments. */
interface Wire {
  stream: { cork(): void; uncork(): void };
  parsedStatements: Record<string, string | undefined>;
  parse(message: { name: string; text: string }): void;
  bind(message: { statement: string; values: string[] }): void;
  execute(message: Record<string, never>): void;
  sync(): void;
}

/**
 * One execution of a statement, as a custom query of the driver. Unlike the driver's `Query` it requests no description of the columns and
 * copies nothing, which is much of the process's work on a short statement.
 */
export class Execution implements pg.Submittable {
  readonly name: string;
  readonly text: string;
  /** Called once, with the fields of each row. The driver replaces it to add its time limit. */
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

  /** The caller counts the rows. */
  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.callback(null, this.#rows);
  }

  handleError(error: unknown): void {
    this.callback(error);
  }
}
