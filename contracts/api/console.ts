import { z } from 'zod';
import { ok, Principal, Scope, Timestamp } from '../primitives.js';
import { GetTokenRequest } from './auth.js';
import { get, PUBLIC, post, TENANT } from './operation.js';

/** Who is signed in to the console. */
export const ConsoleSession = z.object({
  principal: Principal,
  tenant: z.object({ tenant_id: z.string(), name: z.string() }),
  scopes: z.array(Scope),
  expires_at: Timestamp,
  /** The value of the header `X-CSRF-Token`, without which the cookie changes nothing. */
  csrf_token: z.string(),
});
export type ConsoleSession = z.infer<typeof ConsoleSession>;

const SessionResponse = ok({ session: ConsoleSession });

/**
 * Sign-in to the console: a session in a cookie instead of a token in a header. For the console's own page, so these are in no
 * `/openapi.json`; everything else that the page does is an operation of the API.
 */
export const CONSOLE_OPERATIONS = {
  signIn: post('/console/sign_in', PUBLIC, 'Sign in by a link, or as a credential', {
    request: z.union([
      z.strictObject({ link: z.string().min(1).max(200) }),
      GetTokenRequest.pick({ client_id: true, client_secret: true }).strict(),
    ]),
    response: SessionResponse,
  }),
  /** Null: nobody. */
  getSession: get('/console/session', { access: 'optional', agents: 'forbidden' }, 'Who is signed in', {
    response: ok({ session: ConsoleSession.nullable() }),
  }),
  signOut: post('/console/sign_out', TENANT, 'End the session', {
    request: z.strictObject({
      /** All sessions of the same credential. */
      everywhere: z.boolean().default(false),
    }),
    response: ok({}),
  }),
};
