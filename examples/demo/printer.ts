/** Prints the demo: numbered steps, each followed by indented results. */
export class Printer {
  #step = 0;

  title(text: string): void {
    process.stdout.write(`\n${text}\n${'='.repeat(text.length)}\n`);
  }

  /** Starts a step; `call` is its request. */
  step(text: string, call = ''): void {
    this.#step += 1;
    process.stdout.write(`\n${this.#step}. ${text}\n${call && `   ${call}\n`}`);
  }

  /** Prints a result; every line is indented. */
  line(text: string): void {
    process.stdout.write(`${indent(text)}\n`);
  }

  /** Prints the answer of an agent. */
  quote(text: string): void {
    process.stdout.write(`${text.trimEnd().replace(/^/gm, '   > ')}\n`);
  }

  /** Prints a chunk of a streamed answer. */
  chunk(text: string, isFirst: boolean): void {
    process.stdout.write(`${isFirst ? '   > ' : ''}${text.replaceAll('\n', '\n   > ')}`);
  }

  endChunks(): void {
    process.stdout.write('\n');
  }
}

function indent(text: string): string {
  return text.replace(/^/gm, '   ');
}
