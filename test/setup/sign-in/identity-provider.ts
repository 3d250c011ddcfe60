import { generateKeyPairSync } from 'node:crypto';
import type { RequestListener } from 'node:http';
import Provider from 'oidc-provider';
import { httpServer } from '../../runtime/loopback-server.js';

/** What the provider says of somebody. */
export interface Account {
  name?: string;
  email?: string;
  email_verified?: boolean;
  groups?: string[];
}

export const CLIENT = { client_id: 'fleet', client_secret: 'secret-of-the-client' };

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });

const TTL = 600;

/** It warns of keeping its state in memory. */
function quietly<T>(work: () => T): T {
  const { warn } = console;
  console.warn = () => undefined;
  try {
    return work();
  } finally {
    console.warn = warn;
  }
}

const NOT_YET: RequestListener = (_request, response) => response.writeHead(503).end();

/**
 * A certified provider of OpenID Connect on a port of its own. Whoever comes is `state.account` there, without a password. It answers once `open`
 * has been told where the platform is.
 */
export async function identityProvider(accounts: Record<string, Account>) {
  let handler = NOT_YET;
  const { url: issuer } = await httpServer((request, response) => handler(request, response));
  const state = { account: Object.keys(accounts)[0] ?? '' };

  const providerFor = (platformUrl: string): RequestListener => {
    const provider = new Provider(issuer, {
      jwks: { keys: [privateKey.export({ format: 'jwk' })] },
      clients: [{ ...CLIENT, redirect_uris: [`${platformUrl}/console/oidc/callback`] }],
      claims: { openid: ['sub'], profile: ['name', 'groups'], email: ['email', 'email_verified'] },
      cookies: { keys: ['of a test'] },
      features: { devInteractions: { enabled: false } },
      ttl: { Interaction: TTL, Grant: TTL, Session: TTL, AccessToken: TTL, IdToken: TTL },
      pkce: { required: () => true },
      findAccount: (_context, id) => ({ accountId: id, claims: async () => ({ sub: id, ...accounts[id] }) }),
      interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
      loadExistingGrant: async ({ oidc }) => {
        const grant = new oidc.provider.Grant({
          clientId: oidc.client?.clientId ?? '',
          accountId: oidc.session?.accountId ?? '',
        });
        grant.addOIDCScope('openid profile email');
        await grant.save();
        return grant;
      },
    });
    provider.use(async (context, next) => {
      if (!context.path.startsWith('/interaction/')) return next();
      const answer =
        state.account === '' ? { error: 'access_denied' } : { login: { accountId: state.account, remember: false } };
      await provider.interactionFinished(context.req, context.res, answer);
      context.respond = false;
    });
    return provider.callback();
  };
  const known = new Map<string, RequestListener>();
  const open = (platformUrl: string): void => {
    const listener = known.get(platformUrl) ?? quietly(() => providerFor(platformUrl));
    known.set(platformUrl, listener);
    handler = listener;
  };
  const close = (): void => {
    handler = NOT_YET;
  };
  return { issuer, state, open, close };
}
