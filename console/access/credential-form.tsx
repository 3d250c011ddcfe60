import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Scope } from '../../contracts/primitives.js';
import { credentialsQuery } from '../api/access.js';
import { call } from '../api/call.js';
import { sessionQuery } from '../api/session.js';
import { Choice } from '../list/choice.js';
import { CopyCurl } from '../parts/copy.js';
import { TextField } from '../parts/field.js';
import { Problem } from '../parts/states.js';
import { SecretDialog } from './secret-dialog.js';

const SCOPES: [Scope, string][] = [
  ['read', 'read: sends messages and reads'],
  ['admin', 'admin: also runs the fleet, alerts and policies'],
  ['full', 'full: also credentials, limits and knowledge'],
];
const DAY_MS = 86_400_000;
const LIVES = [
  ['', 'does not expire'],
  ['30', 'expires in 30 days'],
  ['90', 'expires in 90 days'],
  ['365', 'expires in a year'],
] as const;

/** Makes a credential, and shows its secret once. @param props.onDone with the credential that was made, or without */
export function CredentialForm({ onDone }: { onDone: (credentialId?: string) => void }) {
  const client = useQueryClient();
  const { data: session } = useQuery(sessionQuery);
  const [name, setName] = useState('');
  const [scope, setScope] = useState<Scope>('read');
  const [types, setTypes] = useState('');
  const [days, setDays] = useState<(typeof LIVES)[number][0]>('');
  const agent_types = types.split(/[,\s]+/).filter((type) => type !== '');
  const body = () => ({
    name: name.trim(),
    scopes: [scope],
    ...(agent_types.length > 0 && { agent_types }),
    ...(days !== '' && { expires_at: new Date(Date.now() + Number(days) * DAY_MS).toISOString() }),
  });
  const create = useMutation({
    mutationFn: () => call('/credentials/create', body()),
    onSuccess: () => client.invalidateQueries(credentialsQuery),
  });
  if (session?.principal.type === 'operator')
    return (
      <p className="detail quiet">
        An operator of the platform may not make credentials of a tenant. Make its first one with the tenant.
      </p>
    );
  return (
    <form
      className="detail form"
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate();
      }}
    >
      <h2>New credential</h2>
      <TextField
        label="Name"
        hint="Who or what uses it: the audit shows it"
        required
        maxLength={256}
        value={name}
        onChange={setName}
      />
      <div className="field">
        <span className="field-name">Scope</span>
        <Choice label="Scope" value={scope} options={SCOPES} onChange={setScope} />
      </div>
      <TextField
        label="Agent types"
        hint="For agents: the types that they may connect as, with commas between, or * for any. Empty for callers."
        value={types}
        onChange={setTypes}
      />
      <div className="field">
        <span className="field-name">Lifetime</span>
        <Choice label="Lifetime" value={days} options={LIVES} onChange={setDays} />
      </div>
      <Problem error={create.error} />
      <div className="buttons">
        <button type="submit" className="yes" disabled={create.isPending || create.isSuccess}>
          Create
        </button>
        <button type="button" onClick={() => onDone()}>
          Cancel
        </button>
        <CopyCurl path="/credentials/create" body={body()} />
      </div>
      {create.data && <SecretDialog issued={create.data} close={() => onDone(create.data.credential.credential_id)} />}
    </form>
  );
}
