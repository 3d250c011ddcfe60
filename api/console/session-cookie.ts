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
 * The cookie of the console's session. Browsers keep `__Host-` cookies from being set by other hosts and over plain HTTP, which a platform on
 * the own machine speaks.
 */
export class SessionCookie {
  constructor(
    private readonly secrets: Pick<Secrets, 'decrypt'>,
    private readonly baseUrl: () => string,
  ) {}

  #isSecure(): boolean {
    return this.baseUrl().startsWith('https:');
  }

  #name(): string {
    return this.#isSecure() ? '__Host-fleet_console' : 'fleet_console';
  }

  /** @param value '' ends the cookie */
  set(reply: FastifyReply, value: string): void {
    const seconds = value === '' ? 0 : CONSOLE_SESSION_SECONDS;
    const attributes = `Path=/; HttpOnly; SameSite=Lax; Max-Age=${seconds}${this.#isSecure() ? '; Secure' : ''}`;
    reply.header('set-cookie', `${this.#name()}=${value}; ${attributes}`);
  }

  /** The session that a request of the console's page brings; null where another page, or nothing, made the browser send the cookie. */
  read({ headers }: FastifyRequest): SealedSession | null {
    const site = headers['sec-fetch-site'];
    if (site !== undefined && site !== 'same-origin') return null;
    const cookies = (headers.cookie ?? '').split('; ');
    const prefix = `${this.#name()}=`;
    const value = cookies.find((cookie) => cookie.startsWith(prefix))?.slice(prefix.length);
    return value ? unsealConsoleSession(this.secrets, value) : null;
  }

  /**
   * The access token of the session that a request brings; undefined without one.
   * @throws PlatformError forbidden for a change without the session's CSRF token
   */
  tokenOf(request: FastifyRequest): string | undefined {
    const session = this.read(request);
    if (session === null) return undefined;
    if (!SAFE.includes(request.method) && !isCsrfToken(session, request.headers['x-csrf-token']))
      throw new PlatformError('forbidden', 'The header X-CSRF-Token must have the csrf_token of the session.');
    return session.token;
  }
}
