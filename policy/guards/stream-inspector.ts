import { visibleText } from '../places/normalise.js';
import type { GuardedText, GuardFinding, StreamInspector, StreamStep } from './guarded-content.js';

/** How a stream is inspected. */
export interface StreamRules {
  /** Characters of the longest match without a space. */
  span: number;
  /** Characters of a match before the last space in it. */
  reach: number;
  /**
   * The findings in a piece of visible text.
   * @param begins a match that begins before this index was decided about already
   * @param ends a match that ends after this index may be another when more has come
   */
  inspect(visible: string, begins: number, ends: number): GuardFinding[];
  /** The findings in texts that stand for themselves. */
  inspectWhole(texts: readonly GuardedText[]): GuardFinding[];
}

/** Characters before a match that patterns look at: a boundary, or a `not`. */
const CONTEXT_CHARS = 12;
/** Characters after a match that patterns look at. */
const AHEAD_CHARS = 2;
const SPACE = /\s/;

interface HeldItem<Item> {
  item: Item;
  /** Visible characters that it adds. */
  chars: number;
}

/**
 * Holds back the end of a stream in which something may have begun: the last word, up to `span` characters of it, and `reach` characters
 * before it. What is before is released: every match that will still come begins after it. Items are released whole and in order.
 */
export class HoldingInspector<Item> implements StreamInspector<Item> {
  readonly #rules: StreamRules;
  #held: HeldItem<Item>[] = [];
  /** The visible text of the held items. */
  #text = '';
  /** The last characters that were released. */
  #context = '';
  /** The first half of a surrogate pair whose other half has not come. */
  #half = '';
  #stopped = false;
  readonly #reported = new Set<string>();

  constructor(rules: StreamRules) {
    this.#rules = rules;
  }

  push(item: Item, text: string, whole: readonly GuardedText[] = []): StreamStep<Item> {
    if (this.#stopped) return { released: [], findings: [] };
    const added = this.#visible(text);
    this.#text += added;
    this.#held.push({ item, chars: added.length });
    const findings = added === '' ? [] : this.#inspect(this.#text.length - AHEAD_CHARS);
    if (whole.length > 0) findings.push(...this.#rules.inspectWhole(whole));
    return this.#step(findings, this.#text.length - this.#open());
  }

  end(): StreamStep<Item> {
    if (this.#stopped) return { released: [], findings: [] };
    return this.#step(this.#inspect(this.#text.length), Number.POSITIVE_INFINITY);
  }

  /** @param ends how much of the held text is decided about: what follows may change a match at its very end */
  #inspect(ends: number): GuardFinding[] {
    const begins = this.#context.length;
    return this.#rules.inspect(this.#context + this.#text, begins, begins + ends);
  }

  #step(found: GuardFinding[], releasable: number): StreamStep<Item> {
    const findings = found.filter(({ guard, rule, path }) => !this.#reported.has(`${guard} ${rule} ${path}`));
    for (const { guard, rule, path } of findings) this.#reported.add(`${guard} ${rule} ${path}`);
    this.#stopped = findings.some(({ decision }) => decision !== 'allow');
    if (this.#stopped) {
      this.#held = [];
      this.#text = '';
      return { released: [], findings };
    }
    return { released: this.#release(releasable), findings };
  }

  /** @param chars of the held text in which nothing can begin any more */
  #release(chars: number): Item[] {
    let count = 0;
    let end = 0;
    for (const held of this.#held) {
      if (end + held.chars > chars) break;
      end += held.chars;
      count += 1;
    }
    if (count === 0) return [];
    const released = this.#held.splice(0, count).map(({ item }) => item);
    this.#context = (this.#context + this.#text.slice(0, end)).slice(-CONTEXT_CHARS);
    this.#text = this.#text.slice(end);
    return released;
  }

  /** Characters at the end of the held text in which a match may have begun. */
  #open(): number {
    const { span, reach } = this.#rules;
    const decided = this.#text.length - AHEAD_CHARS;
    let word = 0;
    while (word < span && word < decided && !SPACE.test(this.#text[decided - 1 - word] as string)) word++;
    return Math.min(this.#text.length, AHEAD_CHARS + word + reach);
  }

  #visible(text: string): string {
    const whole = this.#half + text;
    const last = whole.charCodeAt(whole.length - 1);
    const isHalf = last >= 0xd800 && last <= 0xdbff;
    this.#half = isHalf ? whole.slice(-1) : '';
    return visibleText(isHalf ? whole.slice(0, -1) : whole);
  }
}
