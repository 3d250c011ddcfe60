import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import type { ConsoleSession } from '../../contracts/api/console.js';
import { ApiError } from '../api/call.js';
import { sessionQuery, signIn, signInQuery } from '../api/session.js';
import { Logo } from '../shell/logo.js';
import { ChooseTenant } from './choose-tenant.js';
import { keepPath } from './return-path.js';

const LINK_PATH = '/console/sign-in';

/** Takes the secret of a link out of the address, so that neither the history nor a bookmark has it. */
function takeLink(): string | null {
  if (!location.pathname.startsWith(LINK_PATH) || location.hash.length < 2) return null;
  const link = location.hash.slice(1);
  history.replaceState(null, '', LINK_PATH);
  return link;
}
const link = takeLink();

/** Leads to the provider. Beside a page on which something was typed it does so in another tab, and the page goes on when it has the focus again. */
function ByProvider({ provider, ended }: { provider: string; ended: boolean }) {
  return (
    <p className="by-provider">
      <a href="/console/oidc/start" onClick={keepPath} {...(ended && { target: '_blank', rel: 'noopener' })}>
        Sign in with {provider}
      </a>
      {ended && <span className="quiet">In another tab. Then come back here.</span>}
    </p>
  );
}

/** Signs in: with the provider, by the link of `npm start`, or as a credential. @param onSignedIn absent: the page goes on where it is */
export function SignIn({ ended, onSignedIn }: { ended: boolean; onSignedIn: (session: ConsoleSession) => void }) {
  const client = useQueryClient();
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const isUsed = useRef(false);
  const { data: how } = useQuery(signInQuery);

  const goOn = (session: ConsoleSession) => {
    client.setQueryData(sessionQuery.queryKey, session);
    onSignedIn(session);
  };
  const signInBy = async (body: Parameters<typeof signIn>[0]) => {
    setBusy(true);
    try {
      const session = await signIn(body);
      goOn(session);
    } catch (error) {
      setProblem(error instanceof ApiError ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  };
  const byLink = useRef(signInBy);
  useEffect(() => {
    if (link === null || isUsed.current) return;
    isUsed.current = true;
    void byLink.current({ link });
  }, []);

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    void signInBy({ client_id: String(form.get('client_id')), client_secret: String(form.get('client_secret')) });
  };

  if (how?.person)
    return (
      <main className="sign-in">
        <Logo />
        <ChooseTenant person={how.person} onChosen={goOn} />
      </main>
    );
  return (
    <main className="sign-in">
      <form onSubmit={submit}>
        <Logo />
        <h1>{ended ? 'Your session has ended' : 'Sign in'}</h1>
        <p className="quiet">
          {ended
            ? 'Sign in again to go on. What you have typed is still there.'
            : 'With the link that npm start prints, or with the id and secret of a credential.'}
        </p>
        {how?.provider && <ByProvider provider={how.provider} ended={ended} />}
        <div className="field">
          <label htmlFor="client_id">Client id</label>
          <input id="client_id" name="client_id" required autoComplete="username" spellCheck={false} maxLength={200} />
        </div>
        <div className="field">
          <label htmlFor="client_secret">Client secret</label>
          <input
            id="client_secret"
            name="client_secret"
            type="password"
            required
            autoComplete="current-password"
            maxLength={512}
          />
        </div>
        {problem && (
          <p className="problem" role="alert">
            {problem}
          </p>
        )}
        <button type="submit" className="yes" disabled={isBusy}>
          {isBusy ? 'Signing in …' : 'Sign in'}
        </button>
      </form>
    </main>
  );
}
