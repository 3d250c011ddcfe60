/** Trigram similarity from which a word stands for another, and how many may stand for one. */
const SIMILARITY_MIN = 0.45;
const SIMILAR_MAX = 8;
/** Shorter terms have too few trigrams to be compared. */
const LETTERS_MIN = 4;
/** What a term takes in memory beside its text, roughly: an entry of the map, of the list and of the counts, and its trigrams. */
const TERM_BYTES = 200;

/** A term that a query term may stand for, and how alike they are: 1 for the same. */
export interface SimilarTerm {
  termId: number;
  similarity: number;
}

function trigrams(term: string): string[] {
  const padded = `  ${term} `;
  return Array.from({ length: padded.length - 2 }, (_, at) => padded.slice(at, at + 3));
}

/** The terms of a knowledge base, numbered from 0. Numbers stay. */
export class Vocabulary {
  readonly #ids = new Map<string, number>();
  readonly #terms: string[] = [];
  readonly #byTrigram = new Map<string, number[]>();
  #compared = 0;
  #letters = 0;

  get size(): number {
    return this.#terms.length;
  }

  /** Memory that it takes, an estimate. */
  get bytes(): number {
    return this.#terms.length * TERM_BYTES + this.#letters * 2;
  }

  /** The number of a term, which is added when it is new. */
  add(term: string): number {
    const known = this.#ids.get(term);
    if (known !== undefined) return known;
    this.#ids.set(term, this.#terms.length);
    this.#letters += term.length;
    return this.#terms.push(term) - 1;
  }

  /** The term itself and those that look like it, the most alike first. */
  similar(term: string): SimilarTerm[] {
    const own = this.#ids.get(term);
    const same = own === undefined ? [] : [{ termId: own, similarity: 1 }];
    return term.length < LETTERS_MIN ? same : [...same, ...this.#alike(term, own)];
  }

  #alike(term: string, own: number | undefined): SimilarTerm[] {
    this.#index();
    const wanted = new Set(trigrams(term));
    const shared = new Map<number, number>();
    for (const trigram of wanted)
      for (const termId of this.#byTrigram.get(trigram) ?? []) shared.set(termId, (shared.get(termId) ?? 0) + 1);
    const found: SimilarTerm[] = [];
    for (const [termId, count] of shared) {
      if (termId === own) continue;
      const similarity = count / (wanted.size + new Set(trigrams(this.#terms[termId] as string)).size - count);
      if (similarity >= SIMILARITY_MIN) found.push({ termId, similarity });
    }
    return found.sort((one, other) => other.similarity - one.similarity).slice(0, SIMILAR_MAX);
  }

  /** Brings the trigrams up to date; queries alone need them. */
  #index(): void {
    for (; this.#compared < this.#terms.length; this.#compared++) {
      const term = this.#terms[this.#compared] as string;
      if (term.length < LETTERS_MIN) continue;
      for (const trigram of new Set(trigrams(term))) {
        const list = this.#byTrigram.get(trigram);
        if (list) list.push(this.#compared);
        else this.#byTrigram.set(trigram, [this.#compared]);
      }
    }
  }
}
