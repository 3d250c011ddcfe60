import { createInterface } from 'node:readline/promises';
import { styleText } from 'node:util';
import { visible } from '../../contracts/visible-text.js';

export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

/** A cell of a table: its text, and the colour that it has on a terminal. */
export type Cell = string | { text: string; colour: Colour };

/** Where people read and answer. */
export interface Terminal {
  /** Writes to standard output. */
  write(text: string): void;
  /** For what goes beside a result: to standard error. */
  note(text: string): void;
  /** Shows what is invisible in a text, and colours it on a terminal that has colours; `NO_COLOR` takes them away. */
  paint(colour: Colour, text: string): string;
  /** Asks whoever sits at the terminal; null where nobody does. Null, too, at the end of the input. */
  ask: ((question: string) => Promise<string | null>) | null;
}

async function ask(question: string): Promise<string | null> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const ended = new Promise<null>((resolve) => lines.once('close', () => resolve(null)));
    return await Promise.race([lines.question(question), ended]);
  } finally {
    lines.close();
  }
}

/** The terminal of this process. */
export function processTerminal(): Terminal {
  const { stdin, stdout, stderr } = process;
  const hasColours = stdout.isTTY && stdout.hasColors();
  return {
    write: (text) => void stdout.write(text),
    note: (text) => void stderr.write(text),
    paint: (colour, text) => (hasColours ? styleText(colour, visible(text)) : visible(text)),
    ask: stdin.isTTY && stderr.isTTY ? ask : null,
  };
}

/** The text of a cell. It may be anybody's: what would command the terminal is shown instead. */
const textOf = (cell: Cell): string => visible(typeof cell === 'string' ? cell : cell.text);

/** Rows below a line of names, in columns. */
export function table({ paint }: Pick<Terminal, 'paint'>, names: readonly string[], rows: readonly Cell[][]): string {
  const widths = names.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => textOf(row[column] ?? '').length)),
  );
  const line = (cells: readonly Cell[]) =>
    cells
      .map((cell, column) => {
        const isLast = column === cells.length - 1;
        const text = isLast ? textOf(cell) : textOf(cell).padEnd(widths[column] ?? 0);
        return typeof cell === 'string' ? text : paint(cell.colour, text);
      })
      .join('  ');
  const header = line(names.map((text) => ({ text, colour: 'dim' as const })));
  return [header, ...rows.map(line)].join('\n');
}

/** The fields of a record below each other; those without a value are left out. */
export function fields({ paint }: Pick<Terminal, 'paint'>, values: Record<string, Cell | undefined>): string {
  const shown = Object.entries(values).filter(([, value]) => value !== undefined && value !== '');
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  return shown
    .map(([name, value = '']) => {
      const text = typeof value === 'string' ? textOf(value) : paint(value.colour, textOf(value));
      return `${paint('dim', name.padEnd(width))}  ${text}`;
    })
    .join('\n');
}

const UNITS: [string, number][] = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
];

/** How long a time of day is away, in its largest unit: `5m`. */
export function distance(at: string, now = Date.now()): string {
  const seconds = Math.round(Math.abs(Date.parse(at) - now) / 1_000);
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? ['s', 1];
  return `${Math.floor(seconds / size)}${unit}`;
}

/** The first line of a text, cut to so many characters. */
export function shortened(text: string, most: number): string {
  const [first = ''] = text.trim().split('\n');
  return first.length > most ? `${first.slice(0, most - 1)}…`.toWellFormed() : first;
}
