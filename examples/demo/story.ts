/** Prints the demo: numbered steps, and what happened in each, indented. */
export class Story {
  #step = 0;

  title(text: string): void {
    process.stdout.write(`\n${text}\n${'='.repeat(text.length)}\n`);
  }

  /** Begins a step; `call` is the request that it is about. */
  step(text: string, call = ''): void {
    this.#step += 1;
    process.stdout.write(`\n${this.#step}. ${text}\n${call && `   ${call}\n`}`);
  }

  /** A line of what happened; more lines are indented as well. */
  say(text: string): void {
    process.stdout.write(`${indent(text)}\n`);
  }

  /** What an agent said. */
  quote(text: string): void {
    process.stdout.write(`${text.trimEnd().replace(/^/gm, '   > ')}\n`);
  }

  /** A piece of a streamed answer, as it arrives. */
  piece(text: string, isFirst: boolean): void {
    process.stdout.write(`${isFirst ? '   > ' : ''}${text.replaceAll('\n', '\n   > ')}`);
  }

  endPieces(): void {
    process.stdout.write('\n');
  }
}

function indent(text: string): string {
  return text.replace(/^/gm, '   ');
}
