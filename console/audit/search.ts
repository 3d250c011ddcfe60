import type { AuditAction, AuditEntry, GetAuditRequest } from '../../contracts/api/tenants/audit.js';
import { sinceOf, TIMES } from '../messages/filters.js';

/** All kinds of actions, in the order of how often somebody looks for them. */
export const KINDS = [
  ...(['request', 'policy', 'guard', 'tool_owner', 'credential', 'user', 'limits', 'price'] as const),
  ...(['alert_rule', 'agent', 'agent_type', 'default_type', 'tenant', 'operator', 'console'] as const),
] satisfies (AuditAction extends `${infer Kind}.${string}` ? Kind : never)[];

/** What the address of the audit says: filters, and the entry that is shown beside the list. */
export interface AuditSearch {
  /** An action, or all of a kind: `policy.*`. */
  action?: string;
  principal?: string;
  target?: string;
  time?: keyof typeof TIMES;
  sort?: 'oldest';
  entry?: string;
}

const TEXT_MAX = 256;
const ACTION = /^[a-z_]+\.([a-z_]+|\*)$/;

/** Reads an address that anybody may have written: what does not fit is left out. */
export function parseAuditSearch(search: Record<string, unknown>): AuditSearch {
  const text = (name: string) => {
    const value = search[name];
    return typeof value === 'string' && value !== '' && value.length <= TEXT_MAX ? { [name]: value } : {};
  };
  const time = (Object.keys(TIMES) as (keyof typeof TIMES)[]).find((value) => value === search.time);
  const { action } = search;
  return {
    ...(typeof action === 'string' && action.length <= 64 && ACTION.test(action) && { action }),
    ...text('principal'),
    ...text('target'),
    ...(time && { time }),
    ...(search.sort === 'oldest' && { sort: 'oldest' }),
    ...text('entry'),
  };
}

/** The list that an address asks for. */
export function auditBody({ entry: _shown, time, ...filters }: AuditSearch, nowMs: number): Partial<GetAuditRequest> {
  return { ...filters, ...(time && { from: sinceOf(time, nowMs) }) };
}

type Page = {
  to: '/alerts' | '/access' | '/fleet' | '/guards' | '/inbox' | '/messages' | '/policies' | '/tools' | '/usage';
  search: Record<string, string>;
};

/** The page of what was changed; null where it has none. */
export function pageOf({ type, id, name }: AuditEntry['target']): Page | null {
  switch (type) {
    case 'alert_rule':
      return { to: '/alerts', search: { tab: 'rules', rule: id } };
    case 'policy':
      return { to: '/policies', search: { policy: id } };
    case 'guard':
      return { to: '/guards', search: { guard: id } };
    case 'tool':
      return { to: '/tools', search: { tool: id } };
    case 'credential':
      return { to: '/access', search: { credential: id } };
    case 'tenant':
    case 'model':
      return { to: '/access', search: { tab: 'limits' } };
    case 'agent':
      return { to: '/fleet', search: { instance: id, ...(name && { type: name }) } };
    case 'agent_type':
      return { to: '/fleet', search: { type: id } };
    case 'request':
      return { to: '/inbox', search: { box: 'decided', request: id } };
    case 'user':
      return { to: '/messages', search: { user_id: id } };
    default:
      return null;
  }
}

/** Verbs of actions, for people. */
const VERBS: Record<string, string> = {
  ...{ create: 'Made', update: 'Changed', delete: 'Deleted', set: 'Set', rotate: 'Gave a new secret to' },
  ...{ revoke: 'Revoked', register: 'Registered', deregister: 'Took out', drain: 'Drained' },
  ...{ undrain: 'Ended the drain of', allow: 'Allowed', disallow: 'Disallowed', decide: 'Decided' },
  ...{ token: 'Took a token as', sign_in: 'Signed in to', sign_out: 'Signed out of' },
};
/** What an action is about, where its kind is no word of its own. */
const NOUNS: Record<string, string> = {
  ...{ alert_rule: 'the alert rule', agent_type: 'the agent type', default_type: 'the default agent type of' },
  ...{ tool_owner: 'the owner of the tool', limits: 'the limits of', price: 'the price of' },
  ...{ user: 'the tokens of the user', operator: 'the operator', console: 'the console as' },
};

/** What was done: `Changed the policy payments`. */
export function actionText({ action, target }: Pick<AuditEntry, 'action' | 'target'>): string {
  const [kind = '', verb = ''] = action.split('.');
  const noun = NOUNS[kind] ?? `the ${kind}`;
  // Nobody reads the audit of another tenant, so its id says nothing.
  const name = target.name ?? (target.type === 'tenant' ? 'the tenant' : target.id);
  return `${VERBS[verb] ?? verb} ${noun} ${name}`;
}
