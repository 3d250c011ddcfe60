import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, Outlet, useMatchRoute, useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import type { ConsoleSession } from '../../contracts/api/console.js';
import { call } from '../api/call.js';
import { useConnection, useLiveRequests } from '../api/live.js';
import { hasScope, sessionQuery, signInQuery, signOut } from '../api/session.js';
import { decisions } from '../inbox/decisions.js';
import { Dialog } from '../parts/dialog.js';
import { Icon } from '../parts/icon.js';
import { useChord, useKeys } from '../parts/keys.js';
import { Failed, Loading } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { ChooseTenant } from '../sign-in/choose-tenant.js';
import { SignIn } from '../sign-in/sign-in.js';
import { Help } from './help.js';
import { Logo } from './logo.js';
import { Palette } from './palette.js';
import { VIEWS } from './views.js';

/** Whether the platform is heard; when it is not, how old that is what is shown. */
function ConnectionNote() {
  const connection = useConnection();
  if (connection.state !== 'away') return null;
  return (
    <p className="away" role="status">
      The platform cannot be reached. What you see is from {new Date(connection.since).toLocaleTimeString()}; trying
      again.
    </p>
  );
}

/** Another tenant is another page: nothing of the first one stays. */
function SwitchTenant({ close }: { close: () => void }) {
  const { data } = useQuery(signInQuery);
  return (
    <Dialog label="Choose a tenant" className="again" onClose={close}>
      {data?.person && <ChooseTenant person={data.person} onChosen={() => location.assign('/console')} />}
    </Dialog>
  );
}

/** Whether two sessions are of different people, or in different tenants. */
function isAnother(one: ConsoleSession, other: ConsoleSession): boolean {
  return one.principal.id !== other.principal.id || one.tenant.tenant_id !== other.tenant.tenant_id;
}

/** The views that somebody may see, with the number of open requests. */
function Views({ session, onChosen }: { session: ConsoleSession; onChosen: () => void }) {
  const { data: waiting = 0 } = useQuery({
    queryKey: ['requests', 'count'],
    queryFn: async () => (await call('/requests/get', { page_size: 1 })).count ?? 0,
  });
  return (
    <nav aria-label="Views" id="views">
      {VIEWS.map(({ heading, views }) => {
        const shown = views.filter(({ scope }) => hasScope(session, scope));
        return (
          shown.length > 0 && (
            <section key={heading}>
              <h2>{heading}</h2>
              {shown.map(({ to, label, icon }) => (
                <Link key={to} to={to} search={{}} activeOptions={{ includeSearch: false }} onClick={onChosen}>
                  <Icon name={icon} /> {label}
                  {to === '/inbox' && waiting > 0 && <span className="count">{numberText(waiting)}</span>}
                </Link>
              ))}
            </section>
          )
        );
      })}
      <a href="/docs" target="_blank" rel="noopener">
        <Icon name="book" /> API reference
      </a>
    </nav>
  );
}

function Navigation({
  session,
  openPalette,
  switchTenant,
  leave,
}: {
  session: ConsoleSession;
  openPalette: () => void;
  switchTenant: () => void;
  leave: () => void;
}) {
  /** On a narrow screen the views open on demand. */
  const [isOpen, setOpen] = useState(false);
  const { principal, tenant, scopes } = session;
  return (
    <header className={`side${isOpen ? ' open' : ''}`}>
      <button
        type="button"
        className="menu"
        aria-expanded={isOpen}
        aria-controls="views"
        aria-label="Views"
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name={isOpen ? 'cross' : 'menu'} />
      </button>
      <Logo />
      <button type="button" className="search" onClick={openPalette}>
        <Icon name="search" /> Go to <kbd>⌘K</kbd>
      </button>
      <Views session={session} onChosen={() => setOpen(false)} />
      <div className="who">
        <span className="cut" title={principal.id}>
          {principal.name ?? principal.id}
        </span>
        <span className="quiet cut">
          {tenant.name} · {scopes.join(', ')}
        </span>
        {session.may_switch && (
          <button type="button" className="link" onClick={switchTenant}>
            Switch tenant
          </button>
        )}
        <button type="button" className="link" onClick={leave}>
          Sign out
        </button>
      </div>
    </header>
  );
}

/** The view of the address; to those who could read nothing there it says so, and asks the API for nothing. */
function View({ session }: { session: ConsoleSession }) {
  const matchRoute = useMatchRoute();
  const view = VIEWS.flatMap(({ views }) => views).find(({ to }) => matchRoute({ to }));
  if (!view || hasScope(session, view.scope)) return <Outlet />;
  return (
    <div className="empty">
      <h2>You cannot see this</h2>
      <p>
        “{view.label}” needs the scope {view.scope}. Ask somebody who has it, or sign in as somebody else.
      </p>
    </div>
  );
}

/** The frame of all views, for whoever is signed in. A session that ends leaves what is shown where it is. */
export function Shell() {
  const client = useQueryClient();
  const navigate = useNavigate();
  const { data: session, error, isPending, refetch } = useQuery(sessionQuery);
  const [open, setOpen] = useState<'palette' | 'help' | 'tenants' | null>(null);
  /** Who was signed in last. */
  const [known, setKnown] = useState<ConsoleSession | null>(null);
  useLiveRequests(session != null);

  useEffect(() => {
    if (!session) return;
    if (known && isAnother(known, session)) location.reload();
    else setKnown(session);
  }, [session, known]);
  useEffect(() => {
    if (session || !known) return;
    // Somebody may have signed in in another tab.
    const onFocus = () => void refetch();
    addEventListener('focus', onFocus);
    return () => removeEventListener('focus', onFocus);
  }, [session, known, refetch]);
  useEffect(() => {
    decisions.client = client;
    const flush = () => void decisions.flush();
    addEventListener('pagehide', flush);
    return () => removeEventListener('pagehide', flush);
  }, [client]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      setOpen((now) => (now === 'palette' ? null : 'palette'));
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
  useKeys({ '?': () => setOpen('help') });
  useChord('g', {
    ...Object.fromEntries(
      VIEWS.flatMap(({ views }) => views).map(({ to, key }) => [key, () => void navigate({ to, search: {} })]),
    ),
    d: () => void navigate({ to: '/inbox', search: { box: 'decided' } }),
  });

  const leave = async (everywhere: boolean) => {
    await decisions.flush();
    await signOut(everywhere).catch(() => undefined);
    setKnown(null);
    client.clear();
    client.setQueryData(sessionQuery.queryKey, null);
  };
  const onSignedIn = (fresh: ConsoleSession) => {
    if (known && isAnother(known, fresh)) return; // the page is read anew
    void client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' });
    if (location.pathname.startsWith('/console/sign-in')) void navigate({ to: '/inbox', search: {}, replace: true });
  };

  if (isPending) return <Loading />;
  if (error && !session) return <Failed error={error} retry={() => void refetch()} />;
  const shown = session ?? known;
  if (!shown) return <SignIn ended={false} onSignedIn={onSignedIn} />;
  return (
    <div className="shell">
      <Navigation
        session={shown}
        openPalette={() => setOpen('palette')}
        switchTenant={() => void decisions.flush().then(() => setOpen('tenants'))}
        leave={() => void leave(false)}
      />
      <main>
        <ConnectionNote />
        <View session={shown} />
      </main>
      {open === 'palette' && <Palette close={() => setOpen(null)} signOut={(everywhere) => void leave(everywhere)} />}
      {open === 'tenants' && <SwitchTenant close={() => setOpen(null)} />}
      {open === 'help' && <Help close={() => setOpen(null)} />}
      {!session && (
        <Dialog label="Sign in" className="again">
          <SignIn ended onSignedIn={onSignedIn} />
        </Dialog>
      )}
    </div>
  );
}
