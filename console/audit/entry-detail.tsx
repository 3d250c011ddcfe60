import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { AuditEntry } from '../../contracts/api/tenants/audit.js';
import { entryQuery } from '../api/audit.js';
import { hasScope, sessionQuery } from '../api/session.js';
import { CopyCurl, Id } from '../parts/copy.js';
import { Fact } from '../parts/fact.js';
import { Failed, Loading } from '../parts/states.js';
import { Ago, wholeTime } from '../parts/time.js';
import { Changes, Json } from '../parts/value.js';
import { actionText, pageOf } from './search.js';

/** What was there before, and what after. */
function Change({ before, after }: { before: AuditEntry['before']; after: AuditEntry['after'] }) {
  if (!before && !after) return <p className="quiet">It changed nothing that the audit keeps.</p>;
  return (
    <>
      <section>
        <h3>{before && after ? 'What was changed' : after ? 'What was made' : 'What was removed'}</h3>
        <Changes before={before ?? {}} after={after ?? {}} none="It is as it was before." />
      </section>
      {before && after && (
        <details>
          <summary>Whole, before and after</summary>
          <div className="both">
            <Json value={before} />
            <Json value={after} />
          </div>
        </details>
      )}
    </>
  );
}

/** One entry of the audit. @param props.known the entry, where the list has it */
export function EntryDetail({ auditId, known }: { auditId: string; known: AuditEntry | undefined }) {
  const { data: entry, error, refetch } = useQuery({ ...entryQuery(auditId), ...(known && { initialData: known }) });
  const { data: session } = useQuery(sessionQuery);
  if (error && entry === undefined) return <Failed error={error} retry={() => void refetch()} />;
  if (entry === undefined) return <Loading />;
  if (entry === null)
    return (
      <div className="empty">
        <h2>This entry is not here</h2>
        <p className="quiet">It is of another tenant, or older than the audit is kept.</p>
      </div>
    );
  const { principal, action, target, at, ip, before, after } = entry;
  const page = pageOf(target);
  const mayOpen = page !== null && (page.to !== '/access' || (session != null && hasScope(session, 'full')));
  return (
    <article className="detail">
      <header>
        <h2>{actionText(entry)}</h2>
        <p className="quiet">
          {principal.name ?? principal.id}, <Ago at={at} />
        </p>
      </header>
      <div className="actions">
        {mayOpen && (
          <Link {...page} className="button">
            Open it
          </Link>
        )}
        <Link to="/audit" search={{ target: target.id }}>
          All about it
        </Link>
        <Link to="/audit" search={{ principal: principal.id }}>
          All by {principal.name ?? 'them'}
        </Link>
      </div>
      <dl className="facts">
        <Fact name="Action">
          <code>{action}</code>
        </Fact>
        <Fact name="When">{wholeTime(at)}</Fact>
        <Fact name={`By (${principal.type})`}>{principal.id}</Fact>
        <Fact name={`Of (${target.type.replaceAll('_', ' ')})`}>{target.id}</Fact>
        {ip && <Fact name="From the address">{ip}</Fact>}
        <Fact name="Entry">
          <Id id={auditId} />
        </Fact>
      </dl>
      <Change before={before} after={after} />
      <footer className="quiet">
        <CopyCurl path="/audit/get" body={{ audit_id: auditId }} />
      </footer>
    </article>
  );
}
