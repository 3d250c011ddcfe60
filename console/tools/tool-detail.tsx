import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { OfferedTool } from '../../contracts/api/tools.js';
import { policiesQuery } from '../api/rules.js';
import { hasScope, sessionQuery } from '../api/session.js';
import { CopyCurl } from '../parts/copy.js';
import { Json } from '../parts/value.js';
import { History } from '../policies/history.js';
import { conditionWords, DECISIONS } from '../policies/words.js';
import { SetOwner } from './owner.js';
import { parametersOf, policiesOf } from './words.js';

/** Who offers the tool, and who may. */
function OfferedBy({ tool: { offered_by, owners, source } }: { tool: OfferedTool }) {
  if (source === 'platform')
    return <p>The platform itself. An agent’s tool of the same name is called only by a target.</p>;
  return (
    <>
      <p>
        {offered_by.map((type, index) => (
          <span key={type}>
            {index > 0 && ', '}
            <Link to="/fleet" search={{ type }}>
              {type}
            </Link>
          </span>
        ))}
      </p>
      <p className="quiet">
        {owners === undefined
          ? 'Any agent type may offer it.'
          : owners.length === 0
            ? 'No agent type may offer it.'
            : `Only ${owners.join(', ')} may offer it.`}
      </p>
    </>
  );
}

function Schema({ schema }: { schema: Record<string, unknown> | undefined }) {
  const parameters = parametersOf(schema);
  if (!schema) return <p className="quiet">It declares no schema: any arguments go to it.</p>;
  return (
    <>
      {parameters.length > 0 && (
        <table className="table parameters">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Type</th>
              <th scope="col">About</th>
            </tr>
          </thead>
          <tbody>
            {parameters.map(({ name, type, isRequired, description }) => (
              <tr key={name}>
                <th scope="row">
                  <code>{name}</code>
                </th>
                <td data-name="Type">
                  <code>{type}</code> {isRequired && <span className="quiet">required</span>}
                </td>
                <td data-name={description ? 'About' : undefined}>{description}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <details open={parameters.length === 0}>
        <summary>Schema</summary>
        <Json value={schema} />
      </details>
    </>
  );
}

/** Which policies may decide about calls of it, in their order. */
function DecidedBy({ tool }: { tool: OfferedTool }) {
  const { data, error } = useQuery(policiesQuery);
  if (error && !data) return <p className="problem">The policies cannot be read now: {error.message}</p>;
  if (!data) return <p className="quiet">Reading the policies…</p>;
  const policies = policiesOf(data, tool.name, Date.now());
  if (policies.length === 0) return <p className="quiet">No policy is about it: every agent may call it.</p>;
  return (
    <ul className="samples">
      {policies.map(({ policy_id, name, decision, match }) => (
        <li key={policy_id}>
          <span className="line">
            <Link to="/policies" search={{ policy: policy_id }} className="cut">
              {name}
            </Link>
            <span className={`badge ${DECISIONS[decision].tone}`}>{DECISIONS[decision].label}</span>
          </span>
          <span className="quiet small">{conditionWords(match).join(' · ') || 'all tool calls'}</span>
        </li>
      ))}
    </ul>
  );
}

/** One tool: who offers it, who may, what it takes, and what decides about calls of it. */
export function ToolDetail({ tool }: { tool: OfferedTool }) {
  const { data: session } = useQuery(sessionQuery);
  const isAdmin = session != null && hasScope(session, 'admin');
  const { name, description, source, input_schema, digest } = tool;
  return (
    <article className="detail">
      <header>
        <div className="line title">
          <h2>{name}</h2>
          {source === 'platform' && <span className="badge">platform</span>}
        </div>
        {description && <p className="prose">{description}</p>}
      </header>
      <div className="actions">
        {isAdmin && source === 'agent' && <SetOwner tool={tool} />}
        {isAdmin && (
          <Link to="/policies" search={{ panel: 'new', tool: name }} className="button">
            New policy
          </Link>
        )}
        <Link to="/inbox" search={{ box: 'all', tool: name }} className="button">
          Requests
        </Link>
      </div>
      <section>
        <h3>Offered by</h3>
        <OfferedBy tool={tool} />
      </section>
      {source === 'agent' && (
        <section>
          <h3>Arguments</h3>
          <Schema schema={input_schema} />
        </section>
      )}
      {isAdmin && (
        <section>
          <h3>Who may call it</h3>
          <DecidedBy tool={tool} />
        </section>
      )}
      {isAdmin && <History target={name} action="tool_owner.set" />}
      <footer className="quiet">
        <span title={digest}>digest {digest.slice(0, 12)}…</span>
        <CopyCurl path="/tools/get" body={{}} />
      </footer>
    </article>
  );
}
