import { visibleText } from '../../places/normalise.js';
import type { Find, GuardedText } from '../guarded-content.js';
import { isHidden } from './hidden-text.js';
import { FOREIGN_RULES, INJECTION_RULES, type InjectionRule } from './injection-rules.js';

/** Cyrillic and Greek letters that look like Latin ones, in lower case. */
const LOOKALIKES: Record<string, string> = {
  ...{
    а: 'a',
    в: 'b',
    с: 'c',
    е: 'e',
    ё: 'e',
    н: 'h',
    і: 'i',
    ї: 'i',
    ј: 'j',
    к: 'k',
    м: 'm',
    о: 'o',
    р: 'p',
    ѕ: 's',
    т: 't',
    у: 'y',
  },
  ...{
    х: 'x',
    ԁ: 'd',
    ɡ: 'g',
    ӏ: 'l',
    ո: 'n',
    ѵ: 'v',
    ԝ: 'w',
    α: 'a',
    ε: 'e',
    ι: 'i',
    κ: 'k',
    ν: 'v',
    ο: 'o',
    ρ: 'p',
    τ: 't',
    υ: 'u',
    χ: 'x',
  },
};
const LOOKALIKE = new RegExp(`[${Object.keys(LOOKALIKES).join('')}]`, 'gu');
const LATIN = /[a-z]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII
const ASCII = /^[\x00-\x7f]*$/;

/** Text that people cannot see. */
export const HIDDEN_FIND = { rule: 'hidden_text', reason: 'The content holds text that people cannot see.' };

/** A text as phrases are looked for in it: visible, in lower case, lookalikes as Latin letters, single spaces, lines kept. */
function foldedText(visible: string): string {
  const lower = visible.toLowerCase();
  const latin =
    ASCII.test(lower) || !LATIN.test(lower) ? lower : lower.replace(LOOKALIKE, (char) => LOOKALIKES[char] as string);
  return latin
    .replace(/[’‘`]/g, "'")
    .replace(/[^\S\n]{2,}|[\t\v\f\r]/g, ' ')
    .replace(/ ?\n[ \n]*/g, '\n');
}

/** Finds instructions to the agent in texts: one finding for each rule and place. */
export function findInjections(texts: readonly GuardedText[]): Find[] {
  const found: Find[] = [];
  for (const { path, text } of texts) {
    if (isHidden(text)) found.push({ ...HIDDEN_FIND, path });
    for (const { rule, what } of injectionsIn(visibleText(text)))
      found.push({ rule, path, reason: `The content holds ${what}.` });
  }
  return found;
}

/** The rules that match a visible text. */
export function injectionsIn(visible: string): InjectionRule[] {
  const folded = foldedText(visible);
  // Line ends inside a sentence separate words as spaces do.
  const joined = folded.replaceAll('\n', ' ');
  const found = INJECTION_RULES.filter((rule) => matches(rule, folded) || (joined !== folded && matches(rule, joined)));
  if (!ASCII.test(visible) || /vergiss|ignor|olvid|oubli/i.test(visible)) {
    const lower = visible.toLowerCase();
    found.push(...FOREIGN_RULES.filter((rule) => matches(rule, lower)));
  }
  return found;
}

function matches({ literals, pattern }: InjectionRule, text: string): boolean {
  return literals.some((literal) => text.includes(literal)) && pattern.test(text);
}
