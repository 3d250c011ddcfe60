import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useRef } from 'react';
import type { Credential } from '../../contracts/api/auth.js';
import { credentialsQuery } from '../api/access.js';
import { Choice, withFilters } from '../list/choice.js';
import { useListKeys } from '../list/list-keys.js';
import { CopyCurl } from '../parts/copy.js';
import { Split } from '../parts/split.js';
import { Failed, Loading } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Ago } from '../parts/time.js';
import { CredentialDetail } from './credential-detail.js';
import { CredentialForm } from './credential-form.js';
import { type AccessSearch, shownCredentials } from './search.js';
import { StandingBadge } from './standing-badge.js';

const SHOW_LABELS = [
  ['', 'Active'],
  ['people', 'People'],
  ['revoked', 'Revoked and expired'],
] as const;

function CredentialRow({ credential, isCurrent }: { credential: Credential; isCurrent: boolean }) {
  const { credential_id, name, scopes, agent_types, last_used_at } = credential;
  return (
    <Link
      from="/access"
      to="/access"
      search={({ form: _, ...old }) => ({ ...old, credential: credential_id })}
      replace
      className={`entry${isCurrent ? ' current' : ''}`}
      aria-current={isCurrent || undefined}
    >
      <span className="line">
        <strong className="cut">{name}</strong>
        <StandingBadge credential={credential} />
      </span>
      <span className="line quiet small">
        <span className="cut">
          {[...scopes, ...(agent_types.length > 0 ? [`agents: ${agent_types.join(', ')}`] : [])].join(' · ')}
        </span>
        <span className="online">{last_used_at ? <Ago at={last_used_at} /> : 'never used'}</span>
      </span>
    </Link>
  );
}

/** Credentials and people, and one of them beside the list. */
export function Credentials({ search }: { search: AccessSearch }) {
  const navigate = useNavigate({ from: '/access' });
  const { data, error, refetch } = useQuery(credentialsQuery);
  const field = useRef<HTMLInputElement>(null);
  const all = data?.credentials ?? [];
  const shown = shownCredentials(all, search, Date.now());
  const current = all.find(({ credential_id }) => credential_id === search.credential);
  const isNew = search.form === 'new';
  const close = () => void navigate({ search: ({ credential: _, form: __, ...old }) => old, replace: true });
  const show = (credential: string) =>
    void navigate({ search: ({ form: _, ...old }) => ({ ...old, credential }), replace: true });
  const filter = (set: Parameters<typeof withFilters<AccessSearch>>[1]) =>
    void navigate({ search: ({ credential: _, ...old }) => withFilters<AccessSearch>(old, set), replace: true });
  const ids = shown.map(({ credential_id }) => credential_id);
  useListKeys({
    ids: isNew ? [] : ids,
    current: search.credential,
    select: show,
    close,
    field,
    more: { n: () => void navigate({ search: { form: 'new' } }) },
  });
  return (
    <Split
      name="Access"
      label={['Credentials and people', 'Credential']}
      isOpen={search.credential !== undefined || isNew}
      close={close}
      list={
        <>
          <header className="filters">
            <div className="line">
              <h1>Access</h1>
              <span className="quiet" role="status">
                {data && numberText(shown.length)}
              </span>
            </div>
            <nav aria-label="Access">
              <Link to="/access" search={{}} aria-current="page" activeProps={{}}>
                Credentials and people
              </Link>
              <Link to="/access" search={{ tab: 'limits' }}>
                Limits and prices
              </Link>
            </nav>
            <div className="choices">
              <Choice
                label="Which"
                value={search.show ?? ''}
                options={SHOW_LABELS}
                onChange={(value) => filter({ show: value })}
              />
              <input
                ref={field}
                type="search"
                aria-label="Find a name"
                placeholder="Find a name"
                value={search.q ?? ''}
                onChange={({ target }) => filter({ q: target.value })}
              />
            </div>
          </header>
          <div className="list-bar">
            <Link to="/access" search={{ form: 'new' }} className="button">
              New credential <kbd>N</kbd>
            </Link>
            <CopyCurl path="/credentials/get" body={{ page_size: 100 }} />
          </div>
          {!data && !error && <Loading />}
          {!data && error && <Failed error={error} retry={() => void refetch()} />}
          {data && shown.length === 0 && (
            <div className="empty">
              <h2>Nothing matches</h2>
              <Link to="/access" search={{}}>
                Show all that are active
              </Link>
            </div>
          )}
          <ul className="entries">
            {shown.map((credential) => (
              <li key={credential.credential_id} id={credential.credential_id}>
                <CredentialRow credential={credential} isCurrent={credential === current} />
              </li>
            ))}
          </ul>
          {data && data.count > all.length && (
            <p className="list-foot small quiet">
              The newest {numberText(all.length)} of {numberText(data.count)}. Read the others over the API.
            </p>
          )}
        </>
      }
    >
      {isNew && <CredentialForm onDone={(id) => (id ? show(id) : close())} />}
      {!isNew && current && <CredentialDetail key={current.credential_id} credential={current} />}
      {!isNew && !current && data && (
        <div className="empty">
          {search.credential === undefined ? (
            <p className="quiet">Select a credential or a person, or make a credential.</p>
          ) : (
            <>
              <h2>This credential is not here</h2>
              <p className="quiet">It is of another tenant, or among the oldest.</p>
            </>
          )}
        </div>
      )}
    </Split>
  );
}
