import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { ConsolePerson, ConsoleSession } from '../../contracts/api/console.js';
import { ApiError } from '../api/call.js';
import { chooseTenant, getTenants, sessionQuery, signInQuery, signOut } from '../api/session.js';

/** A person with rights in several tenants, or an operator of the platform, chooses one. @param onChosen the session has begun */
export function ChooseTenant({
  person,
  onChosen,
}: {
  person: ConsolePerson;
  onChosen: (session: ConsoleSession) => void;
}) {
  const client = useQueryClient();
  const [search, setSearch] = useState('');
  const [problem, setProblem] = useState<string | null>(null);
  const found = useQuery({ queryKey: ['tenants', search], queryFn: () => getTenants(search) });

  const choose = async (tenantId: string) => {
    try {
      const session = await chooseTenant(tenantId);
      onChosen(session);
    } catch (error) {
      setProblem(error instanceof ApiError ? error.message : String(error));
    }
  };
  const leave = async () => {
    await signOut(false).catch(() => undefined);
    await client.invalidateQueries({ queryKey: signInQuery.queryKey });
    client.setQueryData(sessionQuery.queryKey, null);
  };

  return (
    <div className="tenants">
      <h1>Choose a tenant</h1>
      <p className="quiet">
        Signed in as {person.name}.{person.is_operator && ' As an operator you read for an hour.'}
      </p>
      <div className="field">
        <label htmlFor="tenant-search">Name or id</label>
        <input
          id="tenant-search"
          type="search"
          maxLength={256}
          value={search}
          onChange={({ target }) => setSearch(target.value)}
        />
      </div>
      <ul>
        {(found.data ?? []).map(({ tenant_id, name, as_operator }) => (
          <li key={tenant_id}>
            <button type="button" onClick={() => void choose(tenant_id)}>
              {name} <span className="quiet">{as_operator ? 'as operator' : tenant_id}</span>
            </button>
          </li>
        ))}
      </ul>
      {found.data?.length === 0 && <p className="quiet">No tenant fits.</p>}
      {(problem ?? found.error) && (
        <p className="problem" role="alert">
          {problem ?? found.error?.message}
        </p>
      )}
      <button type="button" className="link" onClick={() => void leave()}>
        Sign out
      </button>
    </div>
  );
}
