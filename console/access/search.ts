import type { Credential } from '../../contracts/api/auth.js';
import type { SetLimitsRequest, TenantLimitsResponse } from '../../contracts/api/tenants/tenants.js';

const SHOWS = ['people', 'revoked'] as const;

/** What the address of the access says: the tab, the filters, and the credential that is shown beside the list. */
export interface AccessSearch {
  tab?: 'limits';
  q?: string;
  show?: (typeof SHOWS)[number];
  credential?: string;
  form?: 'new';
}

const TEXT_MAX = 256;

/** Reads an address that anybody may have written: what does not fit is left out. */
export function parseAccessSearch(search: Record<string, unknown>): AccessSearch {
  const text = (name: string) => {
    const value = search[name];
    return typeof value === 'string' && value !== '' && value.length <= TEXT_MAX ? { [name]: value } : {};
  };
  const show = SHOWS.find((value) => value === search.show);
  return {
    ...(search.tab === 'limits' && { tab: 'limits' }),
    ...(search.form === 'new' && { form: 'new' }),
    ...(show && { show }),
    ...text('q'),
    ...text('credential'),
  };
}

/** Whether it is a person, who signed in with the identity provider. */
export const isPerson = ({ credential_id }: Pick<Credential, 'credential_id'>): boolean =>
  credential_id.startsWith('per_');

/** How a credential stands. */
export function standingOf(
  { revoked_at, expires_at }: Pick<Credential, 'revoked_at' | 'expires_at'>,
  nowMs: number,
): 'active' | 'revoked' | 'expired' {
  if (revoked_at !== null) return 'revoked';
  return expires_at !== null && Date.parse(expires_at) <= nowMs ? 'expired' : 'active';
}

/** The credentials that an address asks for. Those that have ended are shown where one asks for them. */
export function shownCredentials(
  all: readonly Credential[],
  { q = '', show }: AccessSearch,
  nowMs: number,
): Credential[] {
  const words = q.toLowerCase();
  return all.filter((credential) => {
    const { name, credential_id, agent_types } = credential;
    const isActive = standingOf(credential, nowMs) === 'active';
    const fits = show === 'revoked' ? !isActive : isActive && (show === undefined || isPerson(credential));
    return fits && [name, credential_id, ...agent_types].some((text) => text.toLowerCase().includes(words));
  });
}

/** Limits as a form has them: empty for none. */
export type LimitsDraft = Record<string, string>;

export const LIMIT_NAMES = ['messages_per_day', 'tokens_per_day', 'cost_usd_per_month'] as const;
export const KEYED_NAMES = ['per_user', 'per_credential', 'per_agent_type'] as const;
type Limits = TenantLimitsResponse['limits'];

/** The form of the limits; the members of `per_user` and the like are named `per_user.messages_per_day`. */
export function limitsDraft(limits: Limits): LimitsDraft {
  const own = LIMIT_NAMES.map((name) => [name, limits[name]] as const);
  const keyed = KEYED_NAMES.flatMap((kind) =>
    LIMIT_NAMES.map((name) => [`${kind}.${name}`, limits[kind]?.[name] ?? null] as const),
  );
  return Object.fromEntries([...own, ...keyed].map(([name, value]) => [name, value === null ? '' : String(value)]));
}

/** The limits that a form has changed. */
export function changedLimits(before: LimitsDraft, after: LimitsDraft): SetLimitsRequest {
  const amount = (name: string) => (after[name] === '' ? null : Number(after[name]));
  const changed = (name: string) => before[name] !== after[name];
  const own = LIMIT_NAMES.filter(changed).map((name) => [name, amount(name)]);
  const keyed = KEYED_NAMES.flatMap((kind) => {
    const names = LIMIT_NAMES.filter((name) => changed(`${kind}.${name}`));
    return names.length === 0
      ? []
      : [[kind, Object.fromEntries(names.map((name) => [name, amount(`${kind}.${name}`)]))]];
  });
  return Object.fromEntries([...own, ...keyed]);
}
