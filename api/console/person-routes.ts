import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { newCsrfToken, sealConsoleSession } from '../../auth/console-sessions.js';
import { OidcProvider, oidcSettings, PendingSignIn } from '../../auth/oidc.js';
import {
  choicesOf,
  findSignIn,
  openPersonSession,
  type Person,
  recordSignIn,
  rightsOf,
  type SignIn,
} from '../../auth/people.js';
import { CONSOLE_OPERATIONS } from '../../contracts/api/console.js';
import { PlatformError } from '../../runtime/errors.js';
import { UnreadableValue } from '../../runtime/secrets.js';
import { type Html, html } from '../approve/html.js';
import { pageOf } from '../approve/page.js';
import { PAGE_HEADERS } from '../approve/style.js';
import type { ApiDeps } from '../deps.js';
import { mount } from '../mount.js';
import { logFailure, toPlatformError } from '../plugins/error-contract.js';
import type { WrongTokens } from '../wrong-tokens.js';
import { HostCookie, type SessionCookie } from './session-cookie.js';
import { sessionView } from './session-view.js';

const CALLBACK = '/console/oidc/callback';
/** How long somebody may take at the provider. */
const PENDING_SECONDS = 600;
const PURPOSE = 'oidc-sign-in';
/** Values of a claim that a page names, and how much of each. */
const SHOWN = { values: 50, characters: 200 };

type Deps = Pick<ApiDeps, 'db' | 'secrets' | 'tokens' | 'config' | 'baseUrl'> & {
  wrongTokens: WrongTokens;
  cookie: SessionCookie;
};

const AGAIN = html`<p><a href="/console/sign-in">To the sign-in</a></p>`;

function sendPage(reply: FastifyReply, status: number, title: string, content: Html): FastifyReply {
  const page = pageOf(title, html`<h1>${title}</h1>${content}${AGAIN}`);
  return reply.code(status).headers(PAGE_HEADERS).type('text/html; charset=utf-8').send(page);
}

/** For somebody whom the provider knows and the platform does not: what their administrators need to know. */
function strangerPage({ issuer, name, roles }: Person, claim: string): Html {
  const shown = roles.slice(0, SHOWN.values).map((role) => html`<li>${role.slice(0, SHOWN.characters)}</li>`);
  const received =
    shown.length === 0
      ? html`<p>The provider sent no value of the claim <b>${claim}</b>.</p>`
      : html`<p>The provider sent these values of the claim <b>${claim}</b>, and none of them gives access:</p><ul>${shown}</ul>
${roles.length > shown.length && html`<p>And ${roles.length - shown.length} more.</p>`}`;
  return html`<p>You are ${name}, as ${issuer} says.</p>${received}
<p>Ask whoever runs this platform to give one of your values a role (OIDC_ROLES), or whoever runs the provider to add you to a group that has one.
Then sign in again.</p>`;
}

/** What the page says of a sign-in that did not work. */
function problemOf({ code, message }: PlatformError): [title: string, text: string] {
  if (code === 'SERVICE_UNAVAILABLE')
    return ['Signing in does not work right now', `${message} Try again in a moment.`];
  if (code === 'RATE_LIMITED') return ['Too many failed sign-ins', 'Try again in a minute.'];
  return ['You are not signed in', `${message} Begin again.`];
}

/** People sign in by OpenID Connect, and choose a tenant. */
export function personRoutes(app: FastifyInstance, deps: Deps): void {
  const { db, secrets, config, baseUrl, wrongTokens, cookie } = deps;
  const settings = oidcSettings(config);
  const provider = settings && new OidcProvider(settings, () => `${baseUrl()}${CALLBACK}`);
  const pendingCookie = new HostCookie('fleet_sign_in', PENDING_SECONDS, baseUrl);

  const pendingOf = (request: FastifyRequest): PendingSignIn => {
    try {
      const plain = secrets.decrypt(Buffer.from(pendingCookie.value(request), 'base64url'), PURPOSE).toString();
      const pending = PendingSignIn.parse(JSON.parse(plain));
      if (pending.ends_at > Date.now() / 1_000) return pending;
    } catch (error) {
      if (!(error instanceof UnreadableValue)) throw error;
    }
    throw new PlatformError('unauthorized', 'It took too long, or was begun in another browser.');
  };

  /** The session's cookie: with the tenant where there is no choice. */
  const cookieFor = async (signIn: SignIn, request: FastifyRequest) => {
    const [only, ...others] = await choicesOf(db, signIn);
    if (only && others.length === 0 && !signIn.is_operator)
      return openPersonSession(deps, signIn, only.tenant_id, request.ip);
    const csrf = newCsrfToken();
    return { csrf, cookie: sealConsoleSession(secrets, { csrf, sign_in_id: signIn.sign_in_id }) };
  };

  /** Answers a page whatever goes wrong, and leads nowhere but to the provider and to the console. */
  const page =
    (work: (request: FastifyRequest, reply: FastifyReply, own: OidcProvider) => Promise<FastifyReply>) =>
    async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
      try {
        if (!provider) throw new PlatformError('NOT_FOUND', 'This platform has no provider (OIDC_ISSUER).');
        reply.headers({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' });
        return await work(request, reply, provider);
      } catch (error) {
        const shown = toPlatformError(error);
        logFailure(request, shown);
        const why = shown.cause instanceof Error ? shown.cause.message : shown.message;
        if (shown.statusCode < 500) request.log.info({ why, request_id: request.id }, 'sign-in failed');
        const [title, text] = problemOf(shown);
        return sendPage(reply, shown.statusCode, title, html`<p>${text}</p>`);
      }
    };

  app.get(
    '/console/oidc/start',
    page(async (_request, reply, own) => {
      const { url, pending } = await own.begin(PENDING_SECONDS);
      pendingCookie.set(reply, secrets.encrypt(JSON.stringify(pending), PURPOSE).toString('base64url'));
      return reply.redirect(url.href, 303);
    }),
  );

  app.get(
    CALLBACK,
    page(async (request, reply, own) => {
      const query = request.raw.url?.split('?')[1] ?? '';
      pendingCookie.set(reply, ''); // for one answer
      const pending = pendingOf(request);
      const person = await wrongTokens.guard(request.ip, () => own.finish(query, pending));
      const rights = rightsOf(config.OIDC_ROLES ?? [], person);
      if ((await choicesOf(db, rights)).length === 0 && !rights.is_operator)
        return sendPage(reply, 403, 'You have no access here', strangerPage(person, config.OIDC_CLAIM_ROLES));
      cookie.set(reply, await cookieFor(await recordSignIn(db, person, rights), request));
      return reply.redirect('/console', 303);
    }),
  );

  /** @throws PlatformError unauthorized where no person has signed in; forbidden for a change without the CSRF token */
  const signedIn = async (request: FastifyRequest): Promise<SignIn> => {
    const id = cookie.readChecked(request)?.sign_in_id;
    const signIn = id === undefined ? null : await findSignIn(db, id);
    if (signIn) return signIn;
    throw new PlatformError('unauthorized', 'Nobody is signed in.');
  };

  mount(app, CONSOLE_OPERATIONS.getSignIn).answer(async (_body, { request, reply }) => {
    const session = cookie.complete(request, reply);
    const signIn = session?.sign_in_id === undefined ? null : await findSignIn(db, session.sign_in_id);
    const person = signIn && { name: signIn.name, is_operator: signIn.is_operator };
    return { ok: true, provider: provider?.name ?? null, person };
  });

  mount(app, CONSOLE_OPERATIONS.getTenants).answer(async ({ search }, { request }) => ({
    ok: true,
    tenants: await choicesOf(db, await signedIn(request), search),
  }));

  mount(app, CONSOLE_OPERATIONS.chooseTenant).answer(async ({ tenant_id }, { request, reply }) => {
    const signIn = await signedIn(request);
    const opened = await openPersonSession(deps, signIn, tenant_id, request.ip);
    cookie.set(reply, opened);
    return { ok: true, session: await sessionView(db, opened.caller, signIn.sign_in_id) };
  });
}
