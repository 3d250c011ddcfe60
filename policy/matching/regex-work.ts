/** Up to how many microseconds a part takes to compile, measured with RE2JS. A Unicode class has hundreds of ranges. */
const UNICODE_CLASS = 250;
/** Code points of a range that are folded in a microsecond, where case is ignored. */
const FOLDED_POINTS = 4;
/** Beyond ASCII, where a range is not understood. */
const UNKNOWN_RANGE = 20_000;
/** A sequence of literals is copied as it grows. */
const literalsWork = (characters: number): number => characters ** 2 / 100;

const REPETITION = /^\{(\d+)(?:,(\d*))?\}/;
const UNICODE = /^\\[pP](?:\{[^}]*\}|[^{])/;
const ESCAPED = /^\\(?:x\{([0-9a-fA-F]+)\}|x([0-9a-fA-F]{2})|.)/su;
const FLAGS = /\(\?[a-zA-Z]*i/;

/** One atom of a class or of the expression: its work, its length in the source, and its code point where it is one. */
interface Atom {
  work: number;
  length: number;
  point?: number;
}

function atomAt(source: string, at: number): Atom {
  const rest = source.slice(at, at + 64);
  const unicode = UNICODE.exec(rest);
  if (unicode) return { work: UNICODE_CLASS, length: unicode[0].length };
  const escaped = ESCAPED.exec(rest);
  if (escaped) {
    const hex = escaped[1] ?? escaped[2];
    return { work: 1, length: escaped[0].length, ...(hex && { point: Number.parseInt(hex, 16) }) };
  }
  const point = source.codePointAt(at) ?? 0;
  return { work: 1, length: point > 0xffff ? 2 : 1, point };
}

/** The class that begins at `[`. */
function classAt(source: string, start: number, ignoresCase: boolean): Atom {
  let at = start + 1;
  if (source[at] === '^') at += 1;
  let work = 1;
  for (let isFirst = true; at < source.length && (isFirst || source[at] !== ']'); isFirst = false) {
    const from = atomAt(source, at);
    at += from.length;
    work += from.work;
    if (source[at] !== '-' || source[at + 1] === ']') continue;
    const to = atomAt(source, at + 1);
    at += 1 + to.length;
    if (!ignoresCase) continue;
    const isKnown = from.point !== undefined && to.point !== undefined;
    work += isKnown ? Math.max(0, (to.point ?? 0) - (from.point ?? 0)) / FOLDED_POINTS : UNKNOWN_RANGE;
  }
  return { work, length: at + 1 - start };
}

/**
 * How long compiling a regular expression takes at most, in microseconds, told by its text alone: a short one may stand for a million
 * instructions (`(…){1000}`), or for sixty thousand characters whose case is ignored (`(?i)[\x{0}-\x{ffff}]`).
 */
export function regexWork(source: string): number {
  const ignoresCase = FLAGS.test(source);
  let work = literalsWork(source.length);
  /**
   * For each open group, its instructions so far: before its last atom (`sum`), and of that atom (`last`), which a repetition multiplies. About
   * one a microsecond.
   */
  const groups = [{ sum: 0, last: 0 }];
  for (let at = 0; at < source.length; ) {
    const group = groups.at(-1) ?? { sum: 0, last: 0 };
    const character = source[at];
    const repetition = REPETITION.exec(source.slice(at, at + 16));
    if (character === '(') {
      groups.push({ sum: 0, last: 0 });
      at += 1;
    } else if (character === ')' && groups.length > 1) {
      groups.pop();
      const outer = groups.at(-1) ?? group;
      outer.sum += outer.last;
      outer.last = 1 + group.sum + group.last;
      at += 1;
    } else if (repetition) {
      group.last *= Math.max(1, Number(repetition[1]), Number(repetition[2] ?? 0));
      at += repetition[0].length;
    } else {
      const atom = character === '[' ? classAt(source, at, ignoresCase) : atomAt(source, at);
      group.sum += group.last;
      group.last = 1;
      work += ignoresCase ? 2 * atom.work : atom.work;
      at += atom.length;
    }
  }
  return groups.reduce((sum, group) => sum + group.sum + group.last, work);
}
