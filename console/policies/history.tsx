import { useQuery } from '@tanstack/react-query';
import { historyQuery } from '../api/rules.js';
import { Ago } from '../parts/time.js';

/** Who made and changed something, as the audit has it. @param props.action all of a kind: `policy.*` */
export function History({ target, action: kind }: { target: string; action: string }) {
  const { data = [] } = useQuery(historyQuery(target, kind));
  if (data.length === 0) return null;
  return (
    <section>
      <h3>History</h3>
      <ul className="history">
        {data.map(({ audit_id, action, principal, at }) => (
          <li key={audit_id}>
            {action.endsWith('.create') ? 'Created' : 'Changed'} by{' '}
            {principal.name ?? `${principal.type} …${principal.id.slice(-6)}`}, <Ago at={at} />
          </li>
        ))}
      </ul>
    </section>
  );
}
