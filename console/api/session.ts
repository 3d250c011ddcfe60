import { queryOptions } from '@tanstack/react-query';
import type { ConsolePerson, ConsoleSession } from '../../contracts/api/console.js';
import { fetchJson, isSignedOut, postJson } from './call.js';

type Signed = { session: ConsoleSession };
type TenantChoice = { tenant_id: string; name: string; as_operator: boolean };

/** Who is signed in; null for nobody. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: async (): Promise<ConsoleSession | null> => {
    try {
      return ((await fetchJson('/console/session')) as { session: ConsoleSession | null }).session;
    } catch (error) {
      if (isSignedOut(error)) return null;
      throw error;
    }
  },
  staleTime: Number.POSITIVE_INFINITY,
});

/** How to sign in, and which person has: of these a tenant may still have to be chosen. */
export const signInQuery = queryOptions({
  queryKey: ['sign-in'],
  queryFn: async () =>
    (await fetchJson('/console/sign_in')) as { provider: string | null; person: ConsolePerson | null },
});

/** The tenants that a person may choose. @throws ApiError */
export async function getTenants(search: string): Promise<TenantChoice[]> {
  return ((await postJson('/console/get_tenants', { search })) as { tenants: TenantChoice[] }).tenants;
}

/** Begins a session in a tenant. @throws ApiError */
export async function chooseTenant(tenantId: string): Promise<ConsoleSession> {
  return ((await postJson('/console/choose_tenant', { tenant_id: tenantId })) as Signed).session;
}

/** Signs in by a link or as a credential. @throws ApiError */
export async function signIn(
  body: { link: string } | { client_id: string; client_secret: string },
): Promise<ConsoleSession> {
  return ((await postJson('/console/sign_in', body)) as Signed).session;
}

/** Ends the session, or all sessions of its credential or person. */
export async function signOut(everywhere: boolean): Promise<void> {
  await postJson('/console/sign_out', { everywhere });
}

/** Whether the session has a scope, or one that includes it. */
export function hasScope({ scopes }: Pick<ConsoleSession, 'scopes'>, scope: 'read' | 'admin' | 'full'): boolean {
  const order = ['read', 'admin', 'full'];
  return scopes.some((held) => order.indexOf(held) >= order.indexOf(scope));
}
