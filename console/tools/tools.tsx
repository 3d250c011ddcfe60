import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useRef } from 'react';
import type { OfferedTool } from '../../contracts/api/tools.js';
import { toolsQuery } from '../api/rules.js';
import { useListKeys } from '../list/list-keys.js';
import { Split } from '../parts/split.js';
import { Failed, Loading } from '../parts/states.js';
import { ToolDetail } from './tool-detail.js';
import { shownTools } from './words.js';

const route = getRouteApi('/tools');

function ToolRow({ tool, isCurrent }: { tool: OfferedTool; isCurrent: boolean }) {
  const { name, offered_by, owners, source, description } = tool;
  return (
    <Link
      from="/tools"
      to="/tools"
      search={(old) => ({ ...old, tool: name })}
      replace
      className={`entry${isCurrent ? ' current' : ''}`}
      aria-current={isCurrent || undefined}
    >
      <span className="line">
        <strong className="cut">{name}</strong>
        {owners && <span className="badge busy">owned</span>}
        {source === 'platform' && <span className="badge">platform</span>}
      </span>
      <span className="quiet small cut">
        {[offered_by.join(', ') || 'the platform', ...(description ? [description] : [])].join(' · ')}
      </span>
    </Link>
  );
}

/** The tools that agents and the platform offer, and one of them beside the list. */
export function Tools() {
  const search = route.useSearch();
  const navigate = useNavigate({ from: '/tools' });
  const list = useQuery(toolsQuery);
  const field = useRef<HTMLInputElement>(null);
  const tools = list.data ?? [];
  const shown = shownTools(tools, search.q);
  const current = tools.find(({ name }) => name === search.tool);
  const close = () => void navigate({ search: ({ tool: _, ...old }) => old, replace: true });
  useListKeys({
    ids: shown.map(({ name }) => name),
    current: search.tool,
    select: (tool) => void navigate({ search: (old) => ({ ...old, tool }), replace: true }),
    close,
    field,
  });
  if (list.error && !list.data) return <Failed error={list.error} retry={() => void list.refetch()} />;
  if (!list.data) return <Loading />;
  return (
    <Split
      name="Tools"
      label={['Tools', 'Tool']}
      isOpen={search.tool !== undefined}
      close={close}
      list={
        <>
          <header className="filters bare">
            <div className="line">
              <h1>Tools</h1>
              <span className="quiet" role="status">
                {tools.length.toLocaleString('en')}
              </span>
            </div>
            <input
              ref={field}
              type="search"
              aria-label="Tool"
              placeholder="Find a tool or an agent type"
              value={search.q ?? ''}
              onChange={({ target }) =>
                void navigate({ search: (old) => ({ ...old, q: target.value || undefined }), replace: true })
              }
            />
          </header>
          <ul className="entries">
            {shown.map((tool) => (
              <li key={`${tool.source} ${tool.name}`} id={tool.name}>
                <ToolRow tool={tool} isCurrent={tool.name === search.tool} />
              </li>
            ))}
          </ul>
          {shown.length === 0 && (
            <div className="empty">
              <h2>Nothing matches</h2>
              <Link to="/tools" search={{}}>
                Show all {tools.length.toLocaleString('en')} tools
              </Link>
            </div>
          )}
        </>
      }
    >
      {current ? (
        <ToolDetail key={current.name} tool={current} />
      ) : (
        <div className="empty">
          {search.tool === undefined ? (
            <p className="quiet">Select a tool to see who offers it.</p>
          ) : (
            <>
              <h2>No tool “{search.tool}”</h2>
              <p className="quiet">No agent that is registered offers it. It appears here when one does.</p>
            </>
          )}
        </div>
      )}
    </Split>
  );
}
