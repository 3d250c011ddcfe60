import type { Artifact, Part } from '../../contracts/a2a/parts.js';

/** Artifacts in a cursor. After a resume, older ones are sent again as a whole. */
const NOTED_MAX = 16;
const NOTE = /^([0-9a-f]{16})([0-9a-f]{16})([tpx])$/;

/** A 64-bit digest of text, which can be continued from its hexadecimal form. It takes the text by UTF-16 units. */
class Digest {
  #low: number;
  #high: number;

  constructor(hex = '811c9dc5cbf29ce4') {
    this.#low = Number.parseInt(hex.slice(0, 8), 16) | 0;
    this.#high = Number.parseInt(hex.slice(8), 16) | 0;
  }

  add(text: string): this {
    let low = this.#low;
    let high = this.#high;
    for (let index = 0; index < text.length; index += 1) {
      const unit = text.charCodeAt(index);
      low = Math.imul(low ^ unit, 0x01000193);
      high = Math.imul(((high << 5) | (high >>> 27)) ^ unit, 0x9e3779b1);
    }
    this.#low = low;
    this.#high = high;
    return this;
  }

  get hex(): string {
    return hex32(this.#low) + hex32(this.#high);
  }
}

function hex32(value: number): string {
  return (value >>> 0).toString(16).padStart(8, '0');
}

/** JSON that does not depend on the order of members, which the database may change. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  const sorted = members.sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${sorted.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join()}}`;
}

/** An artifact as the reader has it. */
interface Shown {
  digest: Digest;
  /** Its last part is plain text, which further plain text continues. */
  endsInText: boolean;
  /** Output may be missing, so nothing can be appended. */
  closed: boolean;
}

function addParts(shown: Shown, parts: readonly Part[]): void {
  for (const part of parts) {
    const isText = part.kind === 'text' && !part.metadata;
    if (!isText) shown.digest.add(`\uffffp${canonical(part)}`);
    else shown.digest.add(shown.endsInText ? part.text : `\ufffft${part.text}`);
    shown.endsInText = isText;
  }
}

function shownWhole({ parts, ...about }: Artifact): Shown {
  const shown: Shown = { digest: new Digest().add(canonical(about)), endsInText: false, closed: false };
  addParts(shown, parts);
  return shown;
}

/** The artifacts that the reader of a stream has, as digests that fit into a cursor. */
export class ShownArtifacts {
  /** By digest of the artifact id, the last updated last. */
  readonly #shown = new Map<string, Shown>();

  /** Parses the result of `notes`; null when it is not valid. */
  static parse(notes: readonly string[]): ShownArtifacts | null {
    const parsed = new ShownArtifacts();
    for (const note of notes) {
      const [, key, digest, state] = NOTE.exec(note) ?? [];
      if (key === undefined) return null;
      parsed.#shown.set(key, { digest: new Digest(digest), endsInText: state === 't', closed: state === 'x' });
    }
    return notes.length > NOTED_MAX ? null : parsed;
  }

  /** Notes an artifact that is sent, or with `append` its continuation. @returns false when the reader lacks the beginning */
  show(artifact: Artifact, append: boolean): boolean {
    const key = new Digest().add(artifact.artifactId).hex;
    const before = this.#shown.get(key);
    if (append && (!before || before.closed)) return false;
    const shown = append && before ? before : shownWhole(artifact);
    if (append) addParts(shown, artifact.parts);
    this.#shown.delete(key);
    this.#shown.set(key, shown);
    return true;
  }

  /** Whether the reader has exactly this artifact. */
  has(artifact: Artifact): boolean {
    return this.#shown.get(new Digest().add(artifact.artifactId).hex)?.digest.hex === shownWhole(artifact).digest.hex;
  }

  /** To be called at a gap: output of the artifacts may be missing. */
  close(): void {
    for (const shown of this.#shown.values()) shown.closed = true;
  }

  /** The parts of a cursor, for the artifacts that were updated last. */
  notes(): string[] {
    return [...this.#shown]
      .slice(-NOTED_MAX)
      .map(([key, { digest, endsInText, closed }]) => key + digest.hex + (closed ? 'x' : endsInText ? 't' : 'p'));
  }
}
