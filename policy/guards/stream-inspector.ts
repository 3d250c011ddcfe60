import { visibleText } from '../places/normalise.js';
import type { GuardedText, GuardFinding, StreamInspector, StreamStep } from './guarded-content.js';
import { HiddenRun } from './injection/hidden-text.js';

/** How a stream is inspected. */
export interface StreamRules {
  /** Characters of the longest match without a space. */
  span: number;
  /** Characters of a match before the last space in it; several spaces in a row are one. */
  reach: number;
  /**
   * The findings in a piece of visible text.
   * @param begins a match that begins before this index was decided about already
   * @param ends a match that ends after this index may be another when more has come
   */
  inspect(visible: string, begins: number, ends: number): GuardFinding[];
  /** The findings in text as it came, with what people cannot see of it; unless it is complete, more may follow. Absent where nothing looks for that. */
  inspectRaw?: (text: string, isComplete: boolean) => GuardFinding[];
  /** The findings in texts that stand for themselves. */
  inspectWhole(texts: readonly GuardedText[]): GuardFinding[];
}

/** Characters before a match that patterns look at: a boundary, or a `not`. */
const CONTEXT_CHARS = 12;
/** Characters after a match that patterns look at. */
const AHEAD_CHARS = 2;
const SPACE = /\s/;
/** Spaces in a row that are kept: no pattern looks at more. */
const SPACES_MAX = 4;
const MANY_SPACES = /\s{5}/;

interface HeldItem<Item> {
  item: Item;
  /** Characters that it adds to the text that is inspected. */
  chars: number;
}

/** Cuts spaces in a row, across the pieces of a stream. */
class SpaceLimit {
  #count = 0;
  #hasLineEnd = false;

  /** The text without the rest of many spaces in a row; if there was a line end, one is left. */
  take(text: string): string {
    const continues = this.#count > 0 && SPACE.test(text.charAt(0));
    if (text === '') return '';
    if (continues || MANY_SPACES.test(text)) return this.#cut(text);
    this.#reset();
    for (let at = text.length - 1; at >= 0 && SPACE.test(text[at] as string); at--) this.#add(text[at] as string);
    return text;
  }

  #cut(text: string): string {
    let kept = '';
    for (const char of text) {
      if (!SPACE.test(char)) this.#reset();
      else if (this.#count < SPACES_MAX || (char === '\n' && !this.#hasLineEnd)) this.#add(char);
      else continue;
      kept += char;
    }
    return kept;
  }

  #reset(): void {
    this.#count = 0;
    this.#hasLineEnd = false;
  }

  #add(space: string): void {
    this.#count += 1;
    this.#hasLineEnd ||= space === '\n';
  }
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
  readonly #hidden = new HiddenRun();
  readonly #spaces = new SpaceLimit();
  #stopped = false;
  readonly #reported = new Set<string>();

  constructor(rules: StreamRules) {
    this.#rules = rules;
  }

  push(item: Item, text: string, beside: readonly GuardedText[] = []): StreamStep<Item> {
    if (this.#stopped) return { released: [], findings: [] };
    const whole = this.#whole(text);
    const added = this.#spaces.take(visibleText(whole));
    this.#text += added;
    this.#held.push({ item, chars: added.length });
    const { inspectRaw } = this.#rules;
    const findings = inspectRaw ? inspectRaw(this.#hidden.take(whole), false) : [];
    if (added !== '') findings.push(...this.#inspect(this.#text.length - AHEAD_CHARS));
    if (beside.length > 0) findings.push(...this.#rules.inspectWhole(beside));
    return this.#step(findings, this.#text.length - this.#open());
  }

  end(): StreamStep<Item> {
    if (this.#stopped) return { released: [], findings: [] };
    const findings = this.#rules.inspectRaw?.(this.#hidden.rest, true) ?? [];
    return this.#step([...findings, ...this.#inspect(this.#text.length)], Number.POSITIVE_INFINITY);
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
    const most = this.#held.length - (Number.isFinite(chars) ? this.#hidden.items : 0);
    for (const held of this.#held.slice(0, most)) {
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
    let at = Math.max(0, this.#text.length - AHEAD_CHARS);
    for (let word = 0; word < span && at > 0 && !this.#isSpace(at - 1); word++) at--;
    for (let chars = 0; chars < reach && at > 0; chars++) {
      at--;
      while (at > 0 && this.#isSpace(at) && this.#isSpace(at - 1)) at--;
    }
    return this.#text.length - at;
  }

  #isSpace(index: number): boolean {
    return SPACE.test(this.#text[index] as string);
  }

  /** The text with half a surrogate pair that came before, and without one at its end. */
  #whole(text: string): string {
    const whole = this.#half + text;
    const last = whole.charCodeAt(whole.length - 1);
    const isHalf = last >= 0xd800 && last <= 0xdbff;
    this.#half = isHalf ? whole.slice(-1) : '';
    return isHalf ? whole.slice(0, -1) : whole;
  }
}
