import type { z } from 'zod';
import type { GetUsageRequest, UsageRow, UsageSums } from '../../contracts/api/usage.js';
import { numberText } from '../parts/texts.js';

const RANGES = ['24h', '7d', '30d'] as const;
const GROUPS = ['day', 'agent_type', 'model', 'user', 'credential'] as const;
const MEASURES = ['cost_usd', 'total_tokens', 'messages'] as const;

export type Range = (typeof RANGES)[number];
export type Group = (typeof GROUPS)[number];
/** What the chart shows, and what the rows are sorted by. */
export type Measure = (typeof MEASURES)[number];

/** What the address of the usage says. Where nothing is said: seven days, by day, the cost. */
export interface UsageSearch {
  range?: Range;
  by?: Group;
  measure?: Measure;
}

/** Reads an address that anybody may have written: what does not fit is left out. */
export function parseUsageSearch(search: Record<string, unknown>): UsageSearch {
  const range = RANGES.find((value) => value === search.range);
  const by = GROUPS.find((value) => value === search.by);
  const measure = MEASURES.find((value) => value === search.measure);
  return { ...(range && { range }), ...(by && { by }), ...(measure && { measure }) };
}

/** The report that an address asks for. Days come in their order, others the largest first. */
export function usageBody({
  range = '7d',
  by = 'day',
  measure = 'cost_usd',
}: UsageSearch): z.input<typeof GetUsageRequest> {
  return { range, group_by: by, sort: by === 'day' ? 'key' : measure, order: 'desc' };
}

const DAY_MS = 86_400_000;
const DAYS: Record<Range, number> = { '24h': 2, '7d': 7, '30d': 30 };

/** All days (UTC) of a range, the oldest first, each with its value: those on which nothing was used too. */
export function daysOf(
  range: Range,
  rows: readonly Pick<UsageRow, 'day' | Measure>[],
  measure: Measure,
  nowMs: number,
): { day: string; value: number }[] {
  const values = new Map(rows.map((row) => [row.day, row[measure]]));
  return Array.from({ length: DAYS[range] }, (_, at) => {
    const day = new Date(nowMs - (DAYS[range] - 1 - at) * DAY_MS).toISOString().slice(0, 10);
    return { day, value: values.get(day) ?? 0 };
  });
}

/** `$0`, `$0.0042`, `$12.30`, `$1,204`. */
export function costText(usd: number): string {
  if (usd === 0) return '$0';
  if (usd < 0.01) return `$${usd.toFixed(4)}`;
  return `$${usd.toLocaleString('en', usd < 1_000 ? { minimumFractionDigits: 2, maximumFractionDigits: 2 } : { maximumFractionDigits: 0 })}`;
}

/** `812`, `12.4 k`, `3.1 M`: for a figure that is read at a glance. */
export function shortCount(count: number): string {
  if (count < 10_000) return numberText(count);
  const [size, unit] =
    count < 1_000_000 ? [1_000, 'k'] : count < 1_000_000_000 ? [1_000_000, 'M'] : [1_000_000_000, 'G'];
  return `${(count / Number(size)).toLocaleString('en', { maximumFractionDigits: 1 })} ${unit}`;
}

/** A value of a measure, in words. */
export function measureText(measure: Measure, value: number): string {
  return measure === 'cost_usd' ? costText(value) : shortCount(Math.round(value));
}

/** How much of the whole a row is, from 0 to 1. */
export function shareOf(measure: Measure, row: Pick<UsageSums, Measure>, totals: Pick<UsageSums, Measure>): number {
  return totals[measure] > 0 ? row[measure] / totals[measure] : 0;
}
