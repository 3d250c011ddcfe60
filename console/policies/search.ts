import type { PolicyScope } from '../../contracts/api/policies/policies.js';

export const SCOPES = ['admission', 'dispatch', 'tool', 'plan', 'session'] as const satisfies PolicyScope[];
const PANELS = ['new', 'edit', 'test'] as const;
const SHOWS = ['active', 'inactive'] as const;

/** What the address of the policies says: filters, the policy that is shown beside the list, and the page that is open over them. */
export interface PoliciesSearch {
  q?: string;
  scope?: PolicyScope;
  show?: (typeof SHOWS)[number];
  policy?: string;
  panel?: (typeof PANELS)[number];
  /** With `panel=new`: the request that the draft is made from, or the tool that it is about. */
  request?: string;
  tool?: string;
}

const TEXT_MAX = 256;

/** Reads an address that anybody may have written: what does not fit is left out. */
export function parsePoliciesSearch(search: Record<string, unknown>): PoliciesSearch {
  const text = (name: string) => {
    const value = search[name];
    return typeof value === 'string' && value !== '' && value.length <= TEXT_MAX ? { [name]: value } : {};
  };
  const one = <Value extends string>(name: string, values: readonly Value[]) => {
    const value = values.find((each) => each === search[name]);
    return value === undefined ? {} : { [name]: value };
  };
  return {
    ...text('q'),
    ...one('scope', SCOPES),
    ...one('show', SHOWS),
    ...text('policy'),
    ...one('panel', PANELS),
    ...text('request'),
    ...text('tool'),
  };
}
