import type { Caller } from '../../contracts/api/auth.js';
import type { Tx } from '../../db/pool.js';
import type { FoundToken, TakeToken } from './callback-tokens.js';
import { callerPrincipal, type Principal, slackPrincipal, tokenPrincipal } from './principals.js';

/** What a principal has seen of what is asked. */
export interface Seen {
  digest: string;
  /** The error text if the digest has changed since. */
  changed: string;
}

/** Gives the principal and, if known, the request that it answers and what it has seen of that request. @param takeToken how a callback token is read */
export type Identify = (
  tx: Tx,
  takeToken: TakeToken,
) => Promise<{ principal: Principal; request_id?: string; seen?: Seen | undefined }>;

const CHANGED_SINCE_SHOWN = 'The arguments were edited since you saw them. Look at them again.';
const CHANGED_SINCE_SENT =
  'Somebody has edited the arguments since this callback_token was sent. A newer delivery announces them; or send the digest of what you have read.';

/** By an access token. @param ip the network address of the caller */
export function byCaller(caller: Caller, ip?: string): Identify {
  return async () => ({ principal: callerPrincipal(caller, ip) });
}

/** Who decides by a token: the user of Slack to whom alone it was given, else whoever has it. */
export function holderOf({ slack_user, ...rule }: FoundToken, type: 'callback' | 'page', ip?: string): Principal {
  return typeof slack_user === 'string' ? slackPrincipal(slack_user, rule, ip) : tokenPrincipal(type, rule, ip);
}

/** By a callback token over the API. */
export function byToken(tenantId: string, token: string, ip?: string): Identify {
  return async (tx, takeToken) => {
    const taken = await takeToken(tx, tenantId, token);
    const seen = { digest: taken.digest, changed: CHANGED_SINCE_SENT };
    return { principal: holderOf(taken, 'callback', ip), request_id: taken.request_id, seen };
  };
}

/** Where a decision on the page came from, and what was seen there. */
export interface SeenPage {
  ip?: string;
  /** The digest of the request as the page showed it; by default the one that the token's delivery announced. A decision about edited arguments is refused. */
  version?: string;
}

/** By a callback token on the page behind its link. */
export function byLink(tenantId: string, token: string, { ip, version }: SeenPage): Identify {
  return async (tx, takeToken) => {
    const taken = await takeToken(tx, tenantId, token);
    const seen = { digest: version ?? taken.digest, changed: CHANGED_SINCE_SHOWN };
    return { principal: holderOf(taken, 'page', ip), request_id: taken.request_id, seen };
  };
}
