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

/** The different groups of three characters of a term, its ends marked. */
function trigrams(term: string): Set<string> {
  const padded = ` ${term} `;
  const all = new Set<string>();
  for (let at = 0; at + 3 <= padded.length; at++) all.add(padded.slice(at, at + 3));
  return all;
}

/** Numbers and identifiers that differ are others, not misspelt ones. */
const LETTERS = /^\p{L}+$/u;

/** Whether a letter is missing, added or another one, or two neighbours are swapped. In short words these leave few trigrams alike. */
function isOneSlip(one: string, other: string): boolean {
  const [short, long] = one.length <= other.length ? [one, other] : [other, one];
  if (long.length - short.length > 1) return false;
  let start = 0;
  while (start < short.length && short[start] === long[start]) start++;
  let end = 0;
  while (end < short.length - start && short.at(-1 - end) === long.at(-1 - end)) end++;
  const [less, more] = [short, long].map((term) => term.slice(start, term.length - end)) as [string, string];
  return less.length === 0 || more.length === 1 || (more.length === 2 && less === `${more[1]}${more[0]}`);
}

/** The terms of a knowledge base, numbered from 0. Numbers stay. */
export class Vocabulary {
  readonly #ids = new Map<string, number>();
  readonly #terms: string[] = [];
  readonly #byTrigram = new Map<string, number[]>();
  /** How many trigrams each term has. */
  readonly #trigramCounts: number[] = [];
  /** How many trigrams each term shares with the one that is looked up; all zero in between. */
  #shared = new Uint8Array(0);
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

  /**
   * The term itself and those that look like it, the most alike first.
   * @param isPresent whether any chunk has a term; terms stay when their chunks are gone
   */
  similar(term: string, isPresent: (termId: number) => boolean): SimilarTerm[] {
    const own = this.#ids.get(term);
    const same = own === undefined || !isPresent(own) ? [] : [{ termId: own, similarity: 1 }];
    const found = term.length < LETTERS_MIN ? [] : this.#alike(term);
    // A word that is there is not misspelt.
    const slips = same.length > 0 || term.length < LETTERS_MIN ? [] : this.#slips(term, found);
    const others = [...found, ...slips].filter(({ termId }) => termId !== own && isPresent(termId));
    return [...same, ...others.sort((one, other) => other.similarity - one.similarity).slice(0, SIMILAR_MAX)];
  }

  #alike(term: string): SimilarTerm[] {
    this.#index();
    const wanted = trigrams(term);
    const candidates: number[] = [];
    for (const trigram of wanted)
      for (const termId of this.#byTrigram.get(trigram) ?? []) {
        if (this.#shared[termId] === 0) candidates.push(termId);
        this.#shared[termId] = (this.#shared[termId] as number) + 1;
      }
    const found: SimilarTerm[] = [];
    for (const termId of candidates) {
      const count = this.#shared[termId] as number;
      this.#shared[termId] = 0;
      const similarity = count / (wanted.size + (this.#trigramCounts[termId] as number) - count);
      if (similarity >= SIMILARITY_MIN) found.push({ termId, similarity });
    }
    return found;
  }

  /** The terms beside these that are one slip away. */
  #slips(term: string, beside: readonly SimilarTerm[]): SimilarTerm[] {
    if (!LETTERS.test(term)) return [];
    const known = new Set(beside.map(({ termId }) => termId));
    const similarity = 1 - 1 / term.length;
    const found: SimilarTerm[] = [];
    for (const [termId, other] of this.#terms.entries())
      if (other.length >= LETTERS_MIN && isOneSlip(term, other) && !known.has(termId))
        found.push({ termId, similarity });
    return found;
  }

  /** Brings the trigrams up to date; queries alone need them. */
  #index(): void {
    for (let termId = this.#trigramCounts.length; termId < this.#terms.length; termId++) {
      const term = this.#terms[termId] as string;
      const own = term.length < LETTERS_MIN ? [] : trigrams(term);
      for (const trigram of own) {
        const list = this.#byTrigram.get(trigram);
        if (list) list.push(termId);
        else this.#byTrigram.set(trigram, [termId]);
      }
      this.#trigramCounts.push('size' in own ? own.size : 0);
    }
    if (this.#shared.length < this.#terms.length) this.#shared = new Uint8Array(this.#terms.length * 2);
  }
}
