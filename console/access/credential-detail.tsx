import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Credential } from '../../contracts/api/auth.js';
import { credentialsQuery } from '../api/access.js';
import { call } from '../api/call.js';
import { sessionQuery } from '../api/session.js';
import { Choice } from '../list/choice.js';
import { Confirm } from '../parts/confirm.js';
import { Copy, CopyCurl } from '../parts/copy.js';
import { Fact } from '../parts/fact.js';
import { Problem } from '../parts/states.js';
import { Ago, Until } from '../parts/time.js';
import { isPerson, standingOf } from './search.js';
import { SecretDialog } from './secret-dialog.js';
import { StandingBadge } from './standing-badge.js';

/** How long the old secret goes on after a rotation, in seconds. */
const OVERLAPS = [
  ['86400', 'for a day'],
  ['3600', 'for an hour'],
  ['604800', 'for seven days'],
  ['0', 'no longer'],
] as const;

function Rotate({ credential: { credential_id, name } }: { credential: Credential }) {
  const client = useQueryClient();
  const [overlap, setOverlap] = useState<(typeof OVERLAPS)[number][0]>('86400');
  const body = { credential_id, overlap_seconds: Number(overlap) };
  const rotate = useMutation({
    mutationFn: () => call('/credentials/rotate', body),
    onSettled: () => client.invalidateQueries(credentialsQuery),
  });
  return (
    <>
      <Confirm
        label="Give it a new secret"
        question={`Give ${name} a new secret?`}
        disabled={rotate.isPending}
        curl={{ path: '/credentials/rotate', body }}
        onConfirm={() => rotate.mutate()}
      >
        <p>The new secret is shown once. Tokens that were taken before stay good until they end.</p>
        <div className="field">
          <span>The old secret works</span>
          <Choice label="The old secret works" value={overlap} options={OVERLAPS} onChange={setOverlap} />
        </div>
      </Confirm>
      <Problem error={rotate.error} />
      {rotate.data && <SecretDialog issued={rotate.data} close={() => rotate.reset()} />}
    </>
  );
}

function Revoke({ credential }: { credential: Credential }) {
  const { credential_id, name } = credential;
  const client = useQueryClient();
  const { data: session } = useQuery(sessionQuery);
  const revoke = useMutation({
    mutationFn: () => call('/credentials/revoke', { credential_id }),
    onSettled: () => client.invalidateQueries(credentialsQuery),
  });
  const isOwn = session?.principal.id === credential_id;
  return (
    <>
      <Confirm
        label={isPerson(credential) ? 'End all sessions' : 'Revoke'}
        danger
        question={isPerson(credential) ? `End all sessions of ${name}?` : `Revoke ${name}?`}
        disabled={revoke.isPending}
        curl={{ path: '/credentials/revoke', body: { credential_id } }}
        onConfirm={() => revoke.mutate()}
      >
        {isOwn && (
          <p className="notice bad">You are signed in with it. Your own session ends, and you may not get back in.</p>
        )}
        {isPerson(credential) ? (
          <p>
            They are signed out within 5 s. They come back with a new sign-in for as long as the identity provider lets
            them: take the role away there first.
          </p>
        ) : (
          <p>Its tokens end within 5 s, and so do the connections of its agents. This cannot be undone.</p>
        )}
      </Confirm>
      <Problem error={revoke.error} />
    </>
  );
}

/** One credential or person: what it may do, since when, and how to end it. */
export function CredentialDetail({ credential }: { credential: Credential }) {
  const { data: session } = useQuery(sessionQuery);
  const { credential_id, name, scopes, agent_types, created_at, expires_at, revoked_at, last_used_at } = credential;
  const isActive = standingOf(credential, Date.now()) === 'active';
  // An operator of the platform may not make credentials of a tenant.
  const mayIssue = session?.principal.type !== 'operator';
  return (
    <article className="detail">
      <header>
        <div className="line title">
          <h2>{name}</h2>
          <StandingBadge credential={credential} />
        </div>
      </header>
      {isActive && (
        <div className="actions">
          {!isPerson(credential) && mayIssue && <Rotate credential={credential} />}
          <Revoke credential={credential} />
          <CopyCurl path="/credentials/revoke" body={{ credential_id }} />
        </div>
      )}
      <dl className="facts">
        <Fact name="Scopes">{scopes.join(', ')}</Fact>
        <Fact name="Acts as agents of the types">
          {agent_types.length === 0 ? 'none' : agent_types.includes('*') ? 'any' : agent_types.join(', ')}
        </Fact>
        <Fact name="Last used">{last_used_at ? <Ago at={last_used_at} /> : 'never'}</Fact>
        <Fact name={isPerson(credential) ? 'First signed in' : 'Created'}>
          <Ago at={created_at} />
        </Fact>
        {expires_at && <Fact name="Expires">{isActive ? <Until at={expires_at} /> : <Ago at={expires_at} />}</Fact>}
        {revoked_at && (
          <Fact name="Revoked">
            <Ago at={revoked_at} />
          </Fact>
        )}
        <Fact name={isPerson(credential) ? 'Id' : 'Client id'}>
          <code>{credential_id}</code> <Copy text={credential_id} label="Copy" />
        </Fact>
      </dl>
      <footer className="quiet">
        <Link to="/audit" search={{ principal: credential_id }}>
          What it changed and decided
        </Link>
        <Link to="/audit" search={{ target: credential_id }}>
          Who changed it
        </Link>
        <Link to="/usage" search={{ by: 'credential', range: '30d' }}>
          What it used
        </Link>
      </footer>
    </article>
  );
}
