import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  CONSOLE_SESSION_SECONDS,
  isCsrfToken,
  type OpenedSession,
  type SealedSession,
  unsealConsoleSession,
} from '../../auth/console-sessions.js';
import { PlatformError } from '../../runtime/errors.js';
import type { Secrets } from '../../runtime/secrets.js';

/** Methods that change nothing, so that they need no CSRF token. */
const SAFE = ['GET', 'HEAD'];

/**
 * A cookie for the own host. Browsers keep `__Host-` cookies from being set by other hosts and over plain HTTP, which a platform on the own machine
 * speaks.
 */
export class HostCookie {
  /** @param readers `page`: the scripts of the own page may read it */
  constructor(
    private readonly name: string,
    private readonly seconds: number,
    private readonly baseUrl: () => string,
    private readonly readers: 'server' | 'page' = 'server',
  ) {}

  #isSecure(): boolean {
    return this.baseUrl().startsWith('https:');
  }

  #name(): string {
    return this.#isSecure() ? `__Host-${this.name}` : this.name;
  }

  /** @param value '' ends the cookie */
  set(reply: FastifyReply, value: string): void {
    const seconds = value === '' ? 0 : this.seconds;
    const own = [...(this.readers === 'server' ? ['HttpOnly'] : []), ...(this.#isSecure() ? ['Secure'] : [])];
    const attributes = ['Path=/', ...own, 'SameSite=Lax', `Max-Age=${seconds}`];
    reply.header('set-cookie', [`${this.#name()}=${value}`, ...attributes].join('; '));
  }

  /** The value that a request brings; '' without one. */
  value({ headers }: FastifyRequest): string {
    const cookies = (headers.cookie ?? '').split('; ');
    const prefix = `${this.#name()}=`;
    return cookies.find((cookie) => cookie.startsWith(prefix))?.slice(prefix.length) ?? '';
  }
}

/** The cookie of the console's session, and beside it the CSRF token for the page to read before it has asked for anything. */
export class SessionCookie {
  readonly #cookie: HostCookie;
  readonly #csrf: HostCookie;

  constructor(
    private readonly secrets: Pick<Secrets, 'decrypt'>,
    baseUrl: () => string,
  ) {
    this.#cookie = new HostCookie('fleet_console', CONSOLE_SESSION_SECONDS, baseUrl);
    this.#csrf = new HostCookie('fleet_csrf', CONSOLE_SESSION_SECONDS, baseUrl, 'page');
  }

  set(reply: FastifyReply, { cookie, csrf }: Pick<OpenedSession, 'cookie' | 'csrf'>): void {
    this.#cookie.set(reply, cookie);
    this.#csrf.set(reply, csrf);
  }

  /** Sets the CSRF token again where the page has lost it: without it nobody could even sign out. */
  complete(request: FastifyRequest, reply: FastifyReply): SealedSession | null {
    const session = this.read(request);
    if (session && this.#csrf.value(request) !== session.csrf) this.#csrf.set(reply, session.csrf);
    return session;
  }

  end(reply: FastifyReply): void {
    this.set(reply, { cookie: '', csrf: '' });
  }

  /** The session that a request of the console's page brings; null where another page, or nothing, made the browser send the cookie. */
  read(request: FastifyRequest): SealedSession | null {
    const site = request.headers['sec-fetch-site'];
    if (site !== undefined && site !== 'same-origin') return null;
    const value = this.#cookie.value(request);
    return value ? unsealConsoleSession(this.secrets, value) : null;
  }

  /**
   * The same, where it may change something.
   * @throws PlatformError forbidden for a change without the session's CSRF token
   */
  readChecked(request: FastifyRequest): SealedSession | null {
    const session = this.read(request);
    if (session !== null && !SAFE.includes(request.method) && !isCsrfToken(session, request.headers['x-csrf-token']))
      throw new PlatformError('forbidden', 'The header X-CSRF-Token must have the value of the cookie fleet_csrf.');
    return session;
  }

  /** The access token of the session that a request brings; undefined without one. @throws PlatformError as `readChecked` */
  tokenOf(request: FastifyRequest): string | undefined {
    return this.readChecked(request)?.token;
  }
}
