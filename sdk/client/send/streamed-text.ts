import type { Artifact, Part } from '../../../contracts/a2a/parts.js';

/** The text that the reader has of an artifact. */
interface Shown {
  text: string;
  /** Whether it ends in plain text, which further plain text continues. */
  continues: boolean;
}

/** The text of artifacts that grow, or are replaced. */
export class StreamedText {
  readonly #shown = new Map<string, Shown>();
  /** The artifact whose text came last; empty before any text. */
  #last = '';
  /** All that this run of the agent has said. */
  #text = '';
  /** What the reader has of a run that was lost, and the present one has not said again. */
  #before = '';

  /** Whether no text was shown. */
  get isEmpty(): boolean {
    return this.#last === '' && this.#before === '';
  }

  /** The answer begins again. What was shown counts as said by the new run as far as that repeats it. */
  startAnew(): void {
    this.#before = this.#text;
    this.#text = '';
    this.#last = '';
    this.#shown.clear();
  }

  /** Takes an update. @returns what the reader lacks */
  add(artifact: Artifact, append: boolean): string {
    return this.#unrepeated(this.#pieceOf(artifact, append));
  }

  /** The piece without what the reader has of a lost run. Where the new run says something else, all its text so far. */
  #unrepeated(piece: string): string {
    this.#text += piece;
    if (this.#before === '' || piece === '') return piece;
    if (this.#before.startsWith(this.#text)) return '';
    const repeated = this.#before;
    this.#before = '';
    return this.#text.startsWith(repeated) ? this.#text.slice(repeated.length) : `\n${this.#text}`;
  }

  #pieceOf({ artifactId, parts }: Artifact, append: boolean): string {
    const before = this.#shown.get(artifactId);
    const start: Shown = before && append ? before : { text: '', continues: false };
    const now = parts.reduce(withPart, start);
    this.#shown.set(artifactId, now);
    const known = before?.text ?? '';
    if (now.text === known || (!append && known.startsWith(now.text))) return '';
    const isContinued = now.text.startsWith(known);
    const piece = isContinued ? now.text.slice(known.length) : now.text;
    const needsBreak = this.#last !== '' && (!isContinued || this.#last !== artifactId);
    this.#last = artifactId;
    return needsBreak ? `\n${piece}` : piece;
  }
}

function withPart({ text, continues }: Shown, part: Part): Shown {
  if (part.kind !== 'text') return { text, continues: false };
  const isPlain = !part.metadata;
  return { text: continues && isPlain ? text + part.text : joined(text, part.text), continues: isPlain };
}

const joined = (text: string, more: string) => (text === '' ? more : `${text}\n${more}`);
