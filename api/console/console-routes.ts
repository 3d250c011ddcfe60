import type { FastifyInstance, FastifyRequest } from 'fastify';
import { authorOf } from '../../audit/record-audit.js';
import { endConsoleSessions, openConsoleSession, redeemSignInLink } from '../../auth/console-sessions.js';
import { isOperator } from '../../auth/operators.js';
import { endSignIn } from '../../auth/people.js';
import type { Caller, Credential } from '../../contracts/api/auth.js';
import { CONSOLE_OPERATIONS } from '../../contracts/api/console.js';
import { tokenRefusal } from '../../contracts/permissions.js';
import { NO_AGENT } from '../../contracts/primitives.js';
import { PlatformError } from '../../runtime/errors.js';
import type { ApiDeps } from '../deps.js';
import type { Logins } from '../logins.js';
import { mount } from '../mount.js';
import type { WrongTokens } from '../wrong-tokens.js';
import type { SessionCookie } from './session-cookie.js';
import { sessionView } from './session-view.js';

type Deps = Pick<ApiDeps, 'db' | 'secrets' | 'tokens'> & {
  logins: Logins;
  wrongTokens: WrongTokens;
  cookie: SessionCookie;
};

/** @throws PlatformError forbidden for credentials that the console has nothing for */
function refuseOthers(credential: Credential): void {
  if (isOperator(credential))
    throw new PlatformError('forbidden', 'The console is for people of one tenant; an operator has none.');
  const refusal = tokenRefusal(credential, NO_AGENT);
  if (refusal !== null) throw new PlatformError('forbidden', 'The credential is for agents, the console for people.');
}

/** Sign-in to the console, by a link or as a credential. */
export function consoleRoutes(app: FastifyInstance, deps: Deps): void {
  const { db, logins, wrongTokens, cookie } = deps;

  const byLink = async (link: string): Promise<Credential> => {
    const credential = await redeemSignInLink(db, link);
    if (credential) return credential;
    throw new PlatformError(
      'unauthorized',
      'The link was used, or is older than ten minutes. Sign in as a credential.',
    );
  };

  /** So that no other page signs its own visitors in. */
  const refuseOtherSites = async ({ headers }: FastifyRequest) => {
    const site = headers['sec-fetch-site'];
    if (site === undefined || site === 'same-origin') return;
    throw new PlatformError('forbidden', 'Only the page of the console may sign in.');
  };

  mount(app, CONSOLE_OPERATIONS.signIn, { onRequest: refuseOtherSites }).answer(async (body, { request, reply }) => {
    const credential = await ('link' in body
      ? wrongTokens.guard(request.ip, () => byLink(body.link))
      : logins.credentialOf(body, request.ip));
    refuseOthers(credential);
    const opened = await openConsoleSession(deps, credential, request.ip);
    cookie.set(reply, opened);
    return { ok: true, session: await sessionView(db, opened.caller) };
  });

  mount(app, CONSOLE_OPERATIONS.getSession).answer(async (_body, { request, reply }) => {
    const session = cookie.complete(request, reply);
    const isSignedIn = session !== null && request.caller !== null;
    return {
      ok: true,
      session: isSignedIn ? await sessionView(db, request.caller as Caller, session.sign_in_id) : null,
    };
  });

  mount(app, CONSOLE_OPERATIONS.signOut).answer(async ({ everywhere }, { request, reply }) => {
    const { caller } = request;
    const session = cookie.readChecked(request);
    if (caller) await endConsoleSessions(db, authorOf(caller, request.ip), caller, everywhere);
    if (session?.sign_in_id !== undefined) await endSignIn(db, session.sign_in_id, everywhere);
    cookie.end(reply);
    return { ok: true };
  });
}
