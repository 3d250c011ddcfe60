/** Evaluates alert rules of Prometheus over given series: as much of PromQL as deploy/prometheus/fleet-rules.yml uses, and an error for the rest. */

type Labels = Record<string, string>;
/** A series: its labels with `__name__`, and its value at a time in seconds; undefined where it has none. */
export interface Series {
  labels: Labels;
  at(seconds: number): number | undefined;
}
type Vector = { labels: Labels; value: number }[];
type Value = number | Vector;
type Evaluate = (series: readonly Series[], atSeconds: number) => Value;

export interface Rule {
  alert: string;
  expr: string;
  forSeconds: number;
}

const SCRAPE_SECONDS = 15;
const EVALUATION_SECONDS = 60;
const UNITS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 };
const TOKEN = /\s*("(?:[^"\\]|\\.)*"|\d+(?:\.\d+)?(?:[smhd]\b)?|[A-Za-z_]\w*|=~|!~|==|!=|[-*/(){}[\],<>=])/y;
const COMPARE: Record<string, (a: number, b: number) => boolean> = {
  '==': (a, b) => a === b,
  '>': (a, b) => a > b,
  '<': (a, b) => a < b,
};
const COMPUTE: Record<string, (a: number, b: number) => number> = {
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
};
const AGGREGATE: Record<string, (values: number[]) => number> = {
  sum: (values) => values.reduce((sum, value) => sum + value, 0),
  min: (values) => Math.min(...values),
  max: (values) => Math.max(...values),
};
/** What a counter has risen by; a lower value is a restart of its process. */
const risen = (samples: number[]): number =>
  samples
    .slice(1)
    .reduce((sum, value, index) => sum + (value < (samples[index] ?? 0) ? value : value - (samples[index] ?? 0)), 0);
const OVER_TIME: Record<string, (samples: number[], seconds: number) => number> = {
  rate: (samples, seconds) => risen(samples) / seconds,
  increase: risen,
  max_over_time: (samples) => Math.max(...samples),
};

const keyOf = (labels: Labels) => JSON.stringify(Object.entries(labels).sort());
const without = ({ [String('__name__')]: _name, ...labels }: Labels): Labels => labels;
const durationOf = (text: string) => Number(text.slice(0, -1)) * (UNITS[text.slice(-1)] ?? Number.NaN);

function grouped(vector: Vector, by: readonly string[]): Map<string, { labels: Labels; items: Vector }> {
  const groups = new Map<string, { labels: Labels; items: Vector }>();
  for (const item of vector) {
    const labels = Object.fromEntries(by.flatMap((name) => (item.labels[name] ? [[name, item.labels[name]]] : [])));
    const group = groups.get(keyOf(labels)) ?? { labels, items: [] };
    groups.set(keyOf(labels), group);
    group.items.push(item);
  }
  return groups;
}

/** Linear inside the bucket, as Prometheus has it. */
function quantile(q: number, buckets: Vector): number {
  const sorted = buckets.map(({ labels, value }) => ({ le: Number(labels.le?.replace('+Inf', 'Infinity')), value }));
  sorted.sort((a, b) => a.le - b.le);
  const total = sorted.at(-1)?.value ?? 0;
  const index = sorted.findIndex(({ value }) => value >= q * total);
  const [below = { le: 0, value: 0 }, found] = [sorted[index - 1], sorted[index]];
  if (total === 0 || !found) return Number.NaN;
  if (found.le === Number.POSITIVE_INFINITY) return below.le;
  return below.le + ((found.le - below.le) * (q * total - below.value)) / (found.value - below.value);
}

function combine(left: Value, right: Value, each: (a: number, b: number) => number | null): Value {
  if (typeof left === 'number' && typeof right === 'number') return each(left, right) ?? Number.NaN;
  if (typeof left === 'number') throw new Error('a scalar on the left of a vector is not used');
  const others =
    typeof right === 'number' ? null : new Map(right.map((one) => [keyOf(without(one.labels)), one.value]));
  return left.flatMap(({ labels, value }) => {
    const other = others ? others.get(keyOf(without(labels))) : (right as number);
    const result = other === undefined ? null : each(value, other);
    return result === null ? [] : [{ labels, value: result }];
  });
}

class Parser {
  readonly #tokens: string[] = [];

  constructor(text: string) {
    TOKEN.lastIndex = 0;
    for (let end = 0; text.slice(end).trim() !== ''; end = TOKEN.lastIndex) {
      const [, token] = TOKEN.exec(text) ?? [];
      if (token === undefined) throw new Error(`PromQL that is not known: ${text.slice(end)}`);
      this.#tokens.push(token);
    }
  }

  parse(): Evaluate {
    const evaluate = this.#binary(0);
    if (this.#tokens.length > 0) throw new Error(`PromQL that is not known: ${this.#tokens.join(' ')}`);
    return evaluate;
  }

  #next(expected?: string): string {
    const token = this.#tokens.shift();
    if (token === undefined || (expected !== undefined && token !== expected))
      throw new Error(`PromQL: ${expected ?? 'more'} is expected, not ${token}`);
    return token;
  }

  #take(token: string): boolean {
    if (this.#tokens[0] !== token) return false;
    this.#tokens.shift();
    return true;
  }

  #list<T>(end: string, item: () => T): T[] {
    const items: T[] = [];
    while (!this.#take(end)) {
      items.push(item());
      this.#take(',');
    }
    return items;
  }

  /** Operators that bind less come first. */
  #binary(level: number): Evaluate {
    const operators = [Object.keys(COMPARE), ['-'], ['*', '/']][level];
    if (!operators) return this.#primary();
    let left = this.#binary(level + 1);
    while (operators.includes(this.#tokens[0] ?? '')) {
      const operator = this.#next();
      const [first, second] = [left, this.#binary(level + 1)];
      const compare = COMPARE[operator];
      const compute = COMPUTE[operator];
      const each = (a: number, b: number) => (compare ? (compare(a, b) ? a : null) : (compute?.(a, b) ?? null));
      left = (series, at) => combine(first(series, at), second(series, at), each);
    }
    return left;
  }

  #primary(): Evaluate {
    const token = this.#next();
    if (/^\d/.test(token)) return () => Number(token);
    if (AGGREGATE[token]) return this.#aggregate(AGGREGATE[token]);
    if (OVER_TIME[token]) return this.#overTime(OVER_TIME[token]);
    if (token === 'time') {
      this.#next('(');
      this.#next(')');
      return (_series, at) => at;
    }
    if (token === 'histogram_quantile') return this.#quantile();
    const matches = this.#matchers(token);
    return (series, at) =>
      series.filter(matches).flatMap(({ labels, at: valueAt }) => {
        const value = valueAt(at);
        return value === undefined ? [] : [{ labels, value }];
      });
  }

  #aggregate(of: (values: number[]) => number): Evaluate {
    let by: string[] = [];
    if (this.#take('by')) {
      this.#next('(');
      by = this.#list(')', () => this.#next());
    }
    this.#next('(');
    const inner = this.#binary(0);
    this.#next(')');
    return (series, at) =>
      [...grouped(inner(series, at) as Vector, by).values()].map(({ labels, items }) => ({
        labels,
        value: of(items.map(({ value }) => value)),
      }));
  }

  #quantile(): Evaluate {
    this.#next('(');
    const q = Number(this.#next());
    this.#next(',');
    const inner = this.#binary(0);
    this.#next(')');
    return (series, at) => {
      const buckets = inner(series, at) as Vector;
      const names = [...new Set(buckets.flatMap(({ labels }) => Object.keys(labels)))].filter((name) => name !== 'le');
      return [...grouped(buckets, names).values()].map(({ labels, items }) => ({ labels, value: quantile(q, items) }));
    };
  }

  #overTime(of: (samples: number[], seconds: number) => number): Evaluate {
    this.#next('(');
    const matches = this.#matchers(this.#next());
    this.#next('[');
    const seconds = durationOf(this.#next());
    this.#next(']');
    this.#next(')');
    const before = Array.from({ length: Math.floor(seconds / SCRAPE_SECONDS) + 1 }, (_, nth) => nth * SCRAPE_SECONDS);
    before.reverse(); // samples come oldest first
    return (series, at) =>
      series.filter(matches).flatMap(({ labels, at: valueAt }) => {
        const samples = before.flatMap((ago) => (at < ago ? [] : (valueAt(at - ago) ?? [])));
        return samples.length === 0 ? [] : [{ labels: without(labels), value: of(samples, seconds) }];
      });
  }

  #matchers(name: string): (series: Series) => boolean {
    const matchers = this.#take('{')
      ? this.#list('}', () => [this.#next(), this.#next(), JSON.parse(this.#next()) as string] as const)
      : [];
    return ({ labels }) =>
      labels.__name__ === name &&
      matchers.every(([label, operator, wanted]) => {
        const value = labels[label] ?? '';
        const isMatch = operator.endsWith('~') ? new RegExp(`^(?:${wanted})$`).test(value) : value === wanted;
        return isMatch === !operator.startsWith('!');
      });
  }
}

/** The rules of a file whose expressions are each on one line. */
export function readRules(text: string): Rule[] {
  return text
    .split(/^ {6}- alert: /m)
    .slice(1)
    .map((rule) => ({
      alert: rule.split('\n', 1)[0] ?? '',
      expr: /^ {8}expr: (.*)$/m.exec(rule)?.[1] ?? '',
      forSeconds: durationOf(/^ {8}for: (.*)$/m.exec(rule)?.[1] ?? '0s'),
    }));
}

/** Series in the text form of Prometheus, `name{label="value"}`, each with its value at a time in seconds, or one for ever. */
export function seriesOf(values: Record<string, number | ((seconds: number) => number | undefined)>): Series[] {
  return Object.entries(values).map(([text, value]) => {
    const [, name = '', inner = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(text) ?? [];
    const labels = [...inner.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = '', of = '']) => [label, of]);
    return {
      labels: { ...Object.fromEntries(labels), __name__: name },
      at: typeof value === 'number' ? () => value : value,
    };
  });
}

/** Whether an alert fires at any time of these hours. */
export function fires({ expr, forSeconds }: Rule, series: readonly Series[], hours = 2): boolean {
  const evaluate = new Parser(expr).parse();
  const activeSince = new Map<string, number>();
  for (let at = 0; at <= hours * 3_600; at += EVALUATION_SECONDS) {
    const active = (evaluate(series, at) as Vector).map(({ labels }) => keyOf(labels));
    for (const key of activeSince.keys()) if (!active.includes(key)) activeSince.delete(key);
    for (const key of active) {
      if (!activeSince.has(key)) activeSince.set(key, at);
      if (at - (activeSince.get(key) ?? at) >= forSeconds) return true;
    }
  }
  return false;
}
