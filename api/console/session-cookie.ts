import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  CONSOLE_SESSION_SECONDS,
  isCsrfToken,
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
  constructor(
    private readonly name: string,
    private readonly seconds: number,
    private readonly baseUrl: () => string,
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
    const attributes = `Path=/; HttpOnly; SameSite=Lax; Max-Age=${seconds}${this.#isSecure() ? '; Secure' : ''}`;
    reply.header('set-cookie', `${this.#name()}=${value}; ${attributes}`);
  }

  /** The value that a request brings; '' without one. */
  value({ headers }: FastifyRequest): string {
    const cookies = (headers.cookie ?? '').split('; ');
    const prefix = `${this.#name()}=`;
    return cookies.find((cookie) => cookie.startsWith(prefix))?.slice(prefix.length) ?? '';
  }
}

/** The cookie of the console's session. */
export class SessionCookie {
  readonly #cookie: HostCookie;

  constructor(
    private readonly secrets: Pick<Secrets, 'decrypt'>,
    baseUrl: () => string,
  ) {
    this.#cookie = new HostCookie('fleet_console', CONSOLE_SESSION_SECONDS, baseUrl);
  }

  /** @param value '' ends the cookie */
  set(reply: FastifyReply, value: string): void {
    this.#cookie.set(reply, value);
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
      throw new PlatformError('forbidden', 'The header X-CSRF-Token must have the csrf_token of the session.');
    return session;
  }

  /** The access token of the session that a request brings; undefined without one. @throws PlatformError as `readChecked` */
  tokenOf(request: FastifyRequest): string | undefined {
    return this.readChecked(request)?.token;
  }
}
