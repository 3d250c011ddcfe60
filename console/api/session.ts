import { queryOptions } from '@tanstack/react-query';
import type { ConsoleSession } from '../../contracts/api/console.js';
import { fetchJson, isSignedOut, postJson, rememberCsrfToken } from './call.js';

type Signed = { session: ConsoleSession };

/** Who is signed in; null for nobody. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: async (): Promise<ConsoleSession | null> => {
    try {
      const { session } = (await fetchJson('/console/session')) as { session: ConsoleSession | null };
      rememberCsrfToken(session);
      return session;
    } catch (error) {
      if (isSignedOut(error)) return null;
      throw error;
    }
  },
  staleTime: Number.POSITIVE_INFINITY,
});

/** Signs in by a link or as a credential. @throws ApiError */
export async function signIn(
  body: { link: string } | { client_id: string; client_secret: string },
): Promise<ConsoleSession> {
  const { session } = (await postJson('/console/sign_in', body)) as Signed;
  rememberCsrfToken(session);
  return session;
}

/** Ends the session, or all sessions of its credential. */
export async function signOut(everywhere: boolean): Promise<void> {
  await postJson('/console/sign_out', { everywhere });
}

/** Whether the session has a scope, or one that includes it. */
export function hasScope({ scopes }: Pick<ConsoleSession, 'scopes'>, scope: 'read' | 'admin' | 'full'): boolean {
  const order = ['read', 'admin', 'full'];
  return scopes.some((held) => order.indexOf(held) >= order.indexOf(scope));
}
