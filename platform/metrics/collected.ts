import { Counter, Gauge, type Metric, Registry } from 'prom-client';
import { errorMessage } from '../../runtime/errors.js';
import type { Logger } from '../../runtime/logger.js';
import type { MetricDescription } from './metric-table.js';

/** One series of a metric: its labels and its value. */
export type Sample = readonly [labels: Record<string, string>, value: number];
type Samples = Iterable<Sample>;

/** One series of a histogram. */
export interface Distribution {
  labels: Record<string, string>;
  /** How many observations are at most as large as the bound, by bound in rising order. */
  atMost: readonly (readonly [bound: number, count: number])[];
  count: number;
  sum: number;
}

/**
 * A histogram whose observations are counted elsewhere, as a metric of prom-client, whose own histograms can only observe. Its registry asks a
 * metric for its name and for its values.
 */
function collectedHistogram(name: string, help: string, read: () => Iterable<Distribution>): Metric {
  const get = async () => {
    const values = [...read()].flatMap(({ labels, atMost, count, sum }) => [
      ...atMost.map(([bound, value]) => ({ labels: { ...labels, le: bound }, value, metricName: `${name}_bucket` })),
      { labels: { ...labels, le: '+Inf' }, value: count, metricName: `${name}_bucket` },
      { labels, value: sum, metricName: `${name}_sum` },
      { labels, value: count, metricName: `${name}_count` },
    ]);
    return { name, help, type: 'histogram', values, aggregator: 'sum' };
  };
  return { name, get } as unknown as Metric;
}

/**
 * Metrics whose values the platform keeps in plain fields: they are read when Prometheus asks, and nothing is paid for them in between. A
 * metric that cannot be read is left empty, and the log says when that begins and ends.
 */
export class CollectedMetrics<Name extends string> {
  readonly registry = new Registry();
  readonly #log: Pick<Logger, 'info' | 'warn'>;
  readonly #table: Record<Name, MetricDescription>;
  readonly #failing = new Set<string>();

  constructor(log: Pick<Logger, 'info' | 'warn'>, table: Record<Name, MetricDescription>) {
    this.#log = log;
    this.#table = table;
  }

  /** A counter or a gauge. */
  values(name: Name, read: () => Samples | Promise<Samples>): void {
    const { type, help, labels: labelNames } = this.#table[name];
    const collect = async (): Promise<void> => {
      const samples = await this.read(name, read, []);
      metric.reset(); // after the last await: another scrape may be under way, and must not add to what this one has added
      for (const [labels, value] of samples) metric.inc(labels, value);
    };
    const options = { name, help, labelNames, registers: [this.registry], collect };
    const metric = type === 'counter' ? new Counter(options) : new Gauge(options);
  }

  histogram(name: Name, read: () => Iterable<Distribution>): void {
    this.registry.registerMetric(collectedHistogram(name, this.#table[name].help, read));
  }

  /** Never rejects. @param instead what stands for a reading that fails */
  async read<T>(metric: string, read: () => T | Promise<T>, instead: T): Promise<T> {
    try {
      const value = await read();
      if (this.#failing.delete(metric)) this.#log.info({ metric }, 'a metric can be read again');
      return value;
    } catch (error) {
      if (!this.#failing.has(metric)) this.#log.warn({ metric, err: errorMessage(error) }, 'a metric cannot be read');
      this.#failing.add(metric);
      return instead;
    }
  }
}

/** The counts of an object as samples with one label. */
export function* labelled(label: string, counts: Partial<Record<string, number>>): Generator<Sample> {
  for (const [name, count] of Object.entries(counts)) yield [{ [label]: name }, count ?? 0];
}

/** Times up to two minutes are shown apart; those above count as `+Inf`. */
const SHOWN_BITS = 17;

/** Durations in seconds, of milliseconds that were counted by the number of their bits. */
export function durations(
  labels: Record<string, string>,
  { byBitsOfMs, ms }: { byBitsOfMs: readonly number[]; ms: number },
): Distribution {
  let count = 0;
  const atMost = byBitsOfMs.map((inBucket, bits) => {
    count += inBucket;
    return [2 ** bits / 1_000, count] as const;
  });
  return { labels, atMost: atMost.slice(0, SHOWN_BITS + 1), count, sum: ms / 1_000 };
}
