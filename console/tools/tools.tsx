import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useRef } from 'react';
import type { OfferedTool } from '../../contracts/api/tools.js';
import { toolsQuery } from '../api/rules.js';
import { FindField } from '../list/choice.js';
import { useListKeys } from '../list/list-keys.js';
import { ListView } from '../list/list-view.js';
import { NoMatch } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
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
  return (
    <ListView
      name="Tools"
      label={['Tools', 'Tool']}
      count={list.data && numberText(tools.length)}
      filters={
        <FindField
          ref={field}
          label="Tool"
          placeholder="Find a tool or an agent type"
          value={search.q}
          change={(q) => void navigate({ search: (old) => ({ ...old, q }), replace: true })}
        />
      }
      list={list}
      rows={shown}
      idOf={({ name }) => name}
      row={(tool, isCurrent) => <ToolRow tool={tool} isCurrent={isCurrent} />}
      empty={
        <NoMatch
          all={
            <Link to="/tools" search={{}}>
              Show all {numberText(tools.length)} tools
            </Link>
          }
        />
      }
      current={search.tool}
      close={close}
      hint="Select a tool to see who offers it."
    >
      {current && <ToolDetail key={current.name} tool={current} />}
      {!current && list.data && (
        <div className="empty">
          <h2>No tool “{search.tool}”</h2>
          <p className="quiet">No agent that is registered offers it. It appears here when one does.</p>
        </div>
      )}
    </ListView>
  );
}
