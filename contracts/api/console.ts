import { z } from 'zod';
import { AnyId, ok, Principal, Scope, Timestamp } from '../primitives.js';
import { GetTokenRequest } from './auth.js';
import { get, PUBLIC, post } from './operation.js';

/** Who is signed in to the console. */
export const ConsoleSession = z.object({
  principal: Principal,
  tenant: z.object({ tenant_id: z.string(), name: z.string() }),
  scopes: z.array(Scope),
  expires_at: Timestamp,
  /** A person who signed in by OpenID Connect, and may choose among tenants. */
  may_switch: z.boolean(),
});
export type ConsoleSession = z.infer<typeof ConsoleSession>;

/** Who has signed in by OpenID Connect, whether or not a tenant is chosen. */
const ConsolePerson = z.object({
  name: z.string(),
  is_operator: z.boolean(),
});
export type ConsolePerson = z.infer<typeof ConsolePerson>;

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
  signOut: post('/console/sign_out', { access: 'optional', agents: 'forbidden' }, 'End the session', {
    request: z.strictObject({
      /** All sessions of the same credential or person. */
      everywhere: z.boolean().default(false),
    }),
    response: ok({}),
  }),
  getSignIn: get('/console/sign_in', PUBLIC, 'How to sign in, and which person has', {
    response: ok({
      /** The host of the provider of OpenID Connect; null without one. */
      provider: z.string().nullable(),
      person: ConsolePerson.nullable(),
    }),
  }),
  getTenants: post('/console/get_tenants', PUBLIC, 'The tenants that a person may choose', {
    request: z.strictObject({ search: z.string().max(256).default('') }),
    response: ok({
      tenants: z.array(z.object({ tenant_id: z.string(), name: z.string(), as_operator: z.boolean() })),
    }),
  }),
  chooseTenant: post('/console/choose_tenant', PUBLIC, 'Begin a session in a tenant', {
    request: z.strictObject({ tenant_id: AnyId }),
    response: SessionResponse,
  }),
};
