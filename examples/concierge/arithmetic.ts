/** An invalid expression; the message is for its author. */
export class ArithmeticError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ArithmeticError';
  }
}

const LENGTH_MAX = 500;
const DEPTH_MAX = 50;
const TOKEN = /\s*(?:(\d+(?:\.\d+)?(?:e[+-]?\d+)?|\.\d+)|([a-z]+)|(\*\*|[-+*/%^(),]))/iy;
const FUNCTIONS: Record<string, { arity: number; apply: (...values: number[]) => number }> = {
  sqrt: { arity: 1, apply: Math.sqrt },
  abs: { arity: 1, apply: Math.abs },
  round: { arity: 1, apply: Math.round },
  floor: { arity: 1, apply: Math.floor },
  ceil: { arity: 1, apply: Math.ceil },
  ln: { arity: 1, apply: Math.log },
  min: { arity: 2, apply: Math.min },
  max: { arity: 2, apply: Math.max },
};
const CONSTANTS: Record<string, number> = { pi: Math.PI, e: Math.E };

/**
 * The value of an arithmetic expression: `+ - * / % ^ ( )`, functions, `pi`, `e`, and `15% of 80`. Nothing is executed as code.
 * @throws ArithmeticError for anything else, for more than 500 characters, and for values that are not finite
 */
export function evaluate(expression: string): number {
  if (expression.length > LENGTH_MAX) throw new ArithmeticError(`an expression has at most ${LENGTH_MAX} characters`);
  const tokens = tokenize(
    expression
      .replace(/(\d)\s*%\s*of\b/gi, '$1 / 100 *')
      .replaceAll('×', '*')
      .replaceAll('÷', '/'),
  );
  const parser = new Parser(tokens);
  const value = parser.sum(0);
  parser.expectEnd();
  if (!Number.isFinite(value)) throw new ArithmeticError('the result is not a finite number');
  return value;
}

function tokenize(text: string): string[] {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.trimEnd().length) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (!match) throw new ArithmeticError(`I cannot read "${text.slice(at).trim().slice(0, 20)}"`);
    tokens.push((match[1] ?? match[2] ?? match[3] ?? '').toLowerCase());
  }
  return tokens;
}

/** A recursive descent parser, one method for each level of precedence; `depth` limits the recursion. */
class Parser {
  readonly #tokens: string[];
  #at = 0;

  constructor(tokens: string[]) {
    this.#tokens = tokens;
  }

  expectEnd(): void {
    const left = this.#tokens[this.#at];
    if (left !== undefined) throw new ArithmeticError(`I did not expect "${left}"`);
  }

  sum(depth: number): number {
    if (depth > DEPTH_MAX) throw new ArithmeticError('the expression is nested too deeply');
    let value = this.#product(depth);
    for (;;) {
      if (this.#take('+')) value += this.#product(depth);
      else if (this.#take('-')) value -= this.#product(depth);
      else return value;
    }
  }

  #product(depth: number): number {
    let value = this.#signed(depth);
    for (;;) {
      if (this.#take('*')) value *= this.#signed(depth);
      else if (this.#take('/')) value /= this.#divisor(depth);
      else if (this.#take('%')) value %= this.#divisor(depth);
      else return value;
    }
  }

  #divisor(depth: number): number {
    const value = this.#signed(depth);
    if (value === 0) throw new ArithmeticError('division by zero');
    return value;
  }

  /** A sign binds less tightly than a power: `-2^2` is -4. */
  #signed(depth: number): number {
    if (depth > DEPTH_MAX) throw new ArithmeticError('the expression is nested too deeply');
    if (this.#take('-')) return -this.#signed(depth + 1);
    if (this.#take('+')) return this.#signed(depth + 1);
    return this.#power(depth);
  }

  /** Right-associative: `2^3^2` is 2^9. */
  #power(depth: number): number {
    const base = this.#atom(depth);
    return this.#take('^') || this.#take('**') ? base ** this.#signed(depth + 1) : base;
  }

  #atom(depth: number): number {
    const token = this.#tokens[this.#at];
    this.#at += 1;
    if (token === undefined) throw new ArithmeticError('the expression ends too early');
    if (/^[\d.]/.test(token)) return Number(token);
    if (token === '(') return this.#closed(this.sum(depth + 1));
    if (Object.hasOwn(CONSTANTS, token)) return CONSTANTS[token] ?? 0;
    const known = Object.hasOwn(FUNCTIONS, token) ? FUNCTIONS[token] : undefined;
    if (!known) throw new ArithmeticError(`I do not know "${token}"`);
    if (!this.#take('(')) throw new ArithmeticError(`"${token}" needs its value in brackets`);
    const values = [this.sum(depth + 1)];
    while (this.#take(',')) values.push(this.sum(depth + 1));
    if (values.length !== known.arity)
      throw new ArithmeticError(`"${token}" takes ${known.arity} value${known.arity > 1 ? 's' : ''}`);
    return this.#closed(known.apply(...values));
  }

  #closed(value: number): number {
    if (!this.#take(')')) throw new ArithmeticError('a bracket is not closed');
    return value;
  }

  #take(token: string): boolean {
    if (this.#tokens[this.#at] !== token) return false;
    this.#at += 1;
    return true;
  }
}
