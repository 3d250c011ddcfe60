import type { z } from 'zod';
import type { MessagesGetRequest, WaitsFor } from '../../contracts/api/messages.js';
import { MESSAGE_STATES } from '../../contracts/message-states.js';
import { numberText } from '../parts/texts.js';

const WAITS = ['agent', 'room', 'turn', 'evaluator', 'quota', 'person'] as const satisfies WaitsFor['kind'][];

/** Times before now, by their names in the address. */
export const TIMES = { '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000, '30d': 2_592_000_000 } as const;
export type Within = keyof typeof TIMES;
export const WITHIN = Object.keys(TIMES) as Within[];
/** How long a message has waited that counts as stuck. */
export const LONGER = {
  '1min': 60_000,
  '5min': 300_000,
  '15min': 900_000,
  '1h': 3_600_000,
  '1d': 86_400_000,
} as const;
export const LONGER_DEFAULT = '5min';

/** What the address of the messages says: filters, and the message that is shown beside the list. */
export interface MessagesSearch {
  /** `stuck`: those that wait for longer than `longer`. */
  view?: 'stuck';
  waits?: WaitsFor['kind'];
  longer?: keyof typeof LONGER;
  state?: (typeof MESSAGE_STATES)[number];
  agent_type?: string;
  instance_id?: string;
  error_code?: string;
  session_id?: string;
  user_id?: string;
  text?: string;
  /** Accepted within this time. */
  time?: Within;
  /** Or between these, as ISO 8601. */
  since?: string;
  until?: string;
  message?: string;
}

/** The filters that people set by hand, with their values where these are known. */
export const FIELDS: { name: keyof MessagesSearch; label: string; values?: readonly string[]; isTime?: true }[] = [
  { name: 'state', label: 'State', values: MESSAGE_STATES },
  { name: 'agent_type', label: 'Agent' },
  { name: 'instance_id', label: 'Instance' },
  { name: 'error_code', label: 'Error code' },
  { name: 'session_id', label: 'Session' },
  { name: 'user_id', label: 'User' },
  { name: 'time', label: 'Within', values: WITHIN },
  { name: 'since', label: 'From', isTime: true },
  { name: 'until', label: 'To', isTime: true },
];

const TEXT_MAX = 256;

/** Reads an address that anybody may have written: what does not fit is left out. */
export function parseMessagesSearch(search: Record<string, unknown>): MessagesSearch {
  const text = (name: string) => {
    const value = search[name];
    const said = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value;
    return typeof said === 'string' && said !== '' && said.length <= TEXT_MAX ? said : undefined;
  };
  const one = <Value extends string>(name: string, values: readonly Value[]) =>
    values.find((value) => value === search[name]);
  const instant = (name: string) => {
    const at = Date.parse(text(name) ?? '');
    return Number.isNaN(at) ? undefined : new Date(at).toISOString();
  };
  const found: { [Name in keyof MessagesSearch]: MessagesSearch[Name] | undefined } = {
    view: one('view', ['stuck']),
    waits: one('waits', WAITS),
    longer: one('longer', Object.keys(LONGER) as (keyof typeof LONGER)[]),
    state: one('state', MESSAGE_STATES),
    agent_type: text('agent_type'),
    instance_id: text('instance_id'),
    error_code: text('error_code'),
    session_id: text('session_id'),
    user_id: text('user_id'),
    text: text('text'),
    time: one('time', WITHIN),
    since: instant('since'),
    until: instant('until'),
    message: text('message'),
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined)) as MessagesSearch;
}

export type MessagesQuery = Omit<z.input<typeof MessagesGetRequest>, 'page' | 'page_size' | 'cursor'>;

const MINUTE_MS = 60_000;

/** A time so long before now, to the minute. */
export function sinceOf(time: Within, nowMs: number): string {
  return new Date(Math.floor((nowMs - TIMES[time]) / MINUTE_MS) * MINUTE_MS).toISOString();
}

/** The list that an address asks for. */
export function queryOf(search: MessagesSearch, nowMs: number): MessagesQuery {
  const { message: _shown, view, waits, longer = LONGER_DEFAULT, time, ...filters } = search;
  const since = filters.since ?? (time && sinceOf(time, nowMs));
  const stuck = view === 'stuck' && { waited_ms: LONGER[longer], ...(waits && { waits_for: waits }) };
  return { ...filters, ...(since && { since }), ...stuck };
}

/** The filters that are set beside those of the view, which has its own controls. */
export function activeFields(search: MessagesSearch): typeof FIELDS {
  return FIELDS.filter(({ name }) => search[name] !== undefined);
}

/** `1,204`; `10,000+` where not all are counted. */
export function countText({ count, count_estimated }: { count: number; count_estimated?: true }): string {
  if (!count_estimated || count < 1_000) return numberText(count);
  return `${numberText(10 ** Math.floor(Math.log10(count)))}+`;
}
