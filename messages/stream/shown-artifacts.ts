import type { Artifact, Part } from '../../contracts/a2a/parts.js';

/** Artifacts in a cursor. After a resume, older ones are sent again as a whole. */
const NOTED_MAX = 16;
const NOTE = /^([0-9a-f]{16})([0-9a-f]{16})([tpx])$/;

/** A 64-bit hash of text by UTF-16 units, in hexadecimal. @param before the hash of the text that this one continues */
function hashOf(text: string, before = '811c9dc5cbf29ce4'): string {
  let low = Number.parseInt(before.slice(0, 8), 16);
  let high = Number.parseInt(before.slice(8), 16);
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    low = Math.imul(low ^ unit, 0x01000193);
    high = Math.imul(((high << 5) | (high >>> 27)) ^ unit, 0x9e3779b1);
  }
  return [low, high].map((half) => (half >>> 0).toString(16).padStart(8, '0')).join('');
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
  digest: string;
  /** `t`: it ends in plain text, which further plain text continues. `p`: in another part. `x`: output may be missing: nothing is appended. */
  end: 't' | 'p' | 'x';
}

function addParts(shown: Shown, parts: readonly Part[]): Shown {
  let { digest, end } = shown;
  for (const part of parts) {
    const isText = part.kind === 'text' && !part.metadata;
    if (!isText) digest = hashOf(`\uffffp${canonical(part)}`, digest);
    else digest = hashOf(end === 't' ? part.text : `\ufffft${part.text}`, digest);
    end = isText ? 't' : 'p';
  }
  return { digest, end };
}

function shownWhole({ parts, ...about }: Artifact): Shown {
  return addParts({ digest: hashOf(canonical(about)), end: 'p' }, parts);
}

/** The artifacts that the reader of a stream has, as digests that fit into a cursor. */
export class ShownArtifacts {
  /** By digest of the artifact id, the last updated last. */
  readonly #shown = new Map<string, Shown>();

  /** Parses the result of `notes`; null when it is not valid. */
  static parse(notes: readonly string[]): ShownArtifacts | null {
    const parsed = new ShownArtifacts();
    for (const note of notes) {
      const [, key, digest, end] = NOTE.exec(note) ?? [];
      if (key === undefined || digest === undefined) return null;
      parsed.#shown.set(key, { digest, end: end as Shown['end'] });
    }
    return notes.length > NOTED_MAX ? null : parsed;
  }

  /** Notes an artifact that is sent, or with `append` its continuation. @returns false when the reader lacks the beginning */
  show(artifact: Artifact, append: boolean): boolean {
    const key = hashOf(artifact.artifactId);
    const before = this.#shown.get(key);
    if (append && (!before || before.end === 'x')) return false;
    const shown = append && before ? addParts(before, artifact.parts) : shownWhole(artifact);
    this.#shown.delete(key);
    this.#shown.set(key, shown);
    return true;
  }

  /** Whether the reader has exactly this artifact. */
  has(artifact: Artifact): boolean {
    return this.#shown.get(hashOf(artifact.artifactId))?.digest === shownWhole(artifact).digest;
  }

  /** To be called at a gap: output of the artifacts may be missing. */
  close(): void {
    for (const shown of this.#shown.values()) shown.end = 'x';
  }

  /** The parts of a cursor, for the artifacts that were updated last. */
  notes(): string[] {
    return [...this.#shown].slice(-NOTED_MAX).map(([key, { digest, end }]) => key + digest + end);
  }
}
