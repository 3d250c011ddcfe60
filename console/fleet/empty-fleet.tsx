import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { sessionQuery } from '../api/session.js';
import { Copy } from '../parts/copy.js';
import { joinLines } from './health.js';

const LANGUAGES = ['TypeScript', 'Python'] as const;

/** How the first agent joins: five lines, with the address of this platform. */
export function EmptyFleet() {
  const { data: session } = useQuery(sessionQuery);
  const [language, setLanguage] = useState<(typeof LANGUAGES)[number]>('TypeScript');
  const lines = joinLines(language, location.origin);
  const create = [
    'npm run --silent fleet -- credentials create',
    `  --tenant ${session?.tenant.tenant_id ?? 'ten_…'}`,
    '  --name my-agent --scopes read --agent-types my-agent',
  ].join(' \\\n');
  return (
    <div className="empty-fleet">
      <h1>Connect your first agent</h1>
      <p className="quiet">
        An agent is a program that connects to this platform and answers messages. It appears here as soon as it is
        online.
      </p>
      <section>
        <div className="line">
          <h3>1. Write it</h3>
          <fieldset className="tabs">
            <legend className="hidden">Language</legend>
            {LANGUAGES.map((name) => (
              <button key={name} type="button" aria-pressed={name === language} onClick={() => setLanguage(name)}>
                {name}
              </button>
            ))}
          </fieldset>
          <Copy text={lines} label="Copy" />
        </div>
        <pre className="code">{lines}</pre>
        <p className="quiet small">
          The package is in the folder {language === 'Python' ? 'python' : 'sdk'} of the checkout. Its README says how
          to install it.
        </p>
      </section>
      <section>
        <div className="line">
          <h3>2. Give it a credential of its own</h3>
          <Copy text={create} label="Copy" />
        </div>
        <pre className="code">{create}</pre>
        <p className="quiet small">
          In the checkout of the platform. Put what it prints into <code>FLEET_CLIENT_ID</code> and{' '}
          <code>FLEET_CLIENT_SECRET</code> of the agent.
        </p>
      </section>
      <section>
        <h3>3. Start it</h3>
        <p>Then send it a message on the page Talk. Start it again, and both instances share the work.</p>
      </section>
    </div>
  );
}
