import type { Artifact, Part } from '../../contracts/parts.js';

/** Of how many artifacts a cursor says what its reader has; older ones are sent again, whole, after a resume. */
const NOTED_MAX = 16;
const NOTE = /^([0-9a-f]{16})([0-9a-f]{16})([tpx])$/;

/** 64 bits that grow with what is added to them, UTF-16 unit by unit, so that they can be carried on from where they stood. */
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

/** JSON that is the same whatever the order of members, which a database may change. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  const sorted = members.sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${sorted.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join()}}`;
}

/** What the reader has of one artifact. */
interface Shown {
  digest: Digest;
  /** Its last part is plain text, which plain text continues. */
  endsInText: boolean;
  /** Some of it may be missing: what follows cannot be appended. */
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

function whole({ parts, ...about }: Artifact): Shown {
  const shown: Shown = { digest: new Digest().add(canonical(about)), endsInText: false, closed: false };
  addParts(shown, parts);
  return shown;
}

/** What the reader of a stream has of each artifact, as fingerprints that fit into a cursor. */
export class ShownArtifacts {
  /** The one that was touched last comes last. */
  readonly #shown = new Map<string, Shown>();

  /** Reads what `notes` gave; null when it is not that. */
  static read(notes: readonly string[]): ShownArtifacts | null {
    const read = new ShownArtifacts();
    for (const note of notes) {
      const [, key, digest, state] = NOTE.exec(note) ?? [];
      if (key === undefined) return null;
      read.#shown.set(key, { digest: new Digest(digest), endsInText: state === 't', closed: state === 'x' });
    }
    return notes.length > NOTED_MAX ? null : read;
  }

  /** Notes that an artifact, or with `append` what continues it, is shown. False: the reader lacks what it would continue. */
  show(artifact: Artifact, append: boolean): boolean {
    const key = new Digest().add(artifact.artifactId).hex;
    const before = this.#shown.get(key);
    if (append && (!before || before.closed)) return false;
    const shown = append && before ? before : whole(artifact);
    if (append) addParts(shown, artifact.parts);
    this.#shown.delete(key);
    this.#shown.set(key, shown);
    return true;
  }

  /** Whether the reader has the artifact exactly as it is. */
  has(artifact: Artifact): boolean {
    return this.#shown.get(new Digest().add(artifact.artifactId).hex)?.digest.hex === whole(artifact).digest.hex;
  }

  /** Nothing can be appended to what is shown so far: something may be missing. */
  close(): void {
    for (const shown of this.#shown.values()) shown.closed = true;
  }

  /** As parts of a cursor; those touched last, where there are many. */
  notes(): string[] {
    return [...this.#shown]
      .slice(-NOTED_MAX)
      .map(([key, { digest, endsInText, closed }]) => key + digest.hex + (closed ? 'x' : endsInText ? 't' : 'p'));
  }
}
