import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import type { MessageGroup, WaitsFor } from '../../contracts/api/messages.js';
import { groupsQuery } from '../api/messages.js';
import { Icon } from '../parts/icon.js';
import { numberText } from '../parts/texts.js';
import { Ago } from '../parts/time.js';
import { LONGER, LONGER_DEFAULT, type MessagesSearch, sinceOf } from './filters.js';
import { REASONS, REMEDIES } from './words.js';

function Group(props: { group: MessageGroup; label: string; isSet: boolean; set: Partial<MessagesSearch> }) {
  const { group, label, isSet, set } = props;
  const cleared = Object.fromEntries(Object.keys(set).map((name) => [name, undefined]));
  return (
    <li>
      <Link
        from="/messages"
        to="/messages"
        search={({ message: _, ...old }) => ({ ...old, ...(isSet ? cleared : set) })}
        className={`group${isSet ? ' set' : ''}`}
        aria-current={isSet ? 'true' : undefined}
      >
        <span className="line">
          <strong>{numberText(group.count)}</strong>
          {isSet && <Icon name="cross" />}
        </span>
        <span className="cut">{label}</span>
        <span className="quiet small">
          last <Ago at={group.newest_at} />
        </span>
      </Link>
    </li>
  );
}

/** What waits for too long, by what for. */
export function StuckGroups({ search }: { search: MessagesSearch }) {
  const navigate = useNavigate({ from: '/messages' });
  const longer = search.longer ?? LONGER_DEFAULT;
  const { data = [] } = useQuery(
    groupsQuery(() => ({ by: 'waits_for', waited_ms: LONGER[longer] }), ['waits_for', longer]),
  );
  return (
    <div className="groups">
      <label className="line longer">
        <span>Waiting for longer than</span>
        <select
          value={longer}
          onChange={({ target }) =>
            void navigate({ search: (old) => ({ ...old, longer: target.value as keyof typeof LONGER }) })
          }
        >
          {Object.keys(LONGER).map((name) => (
            <option key={name} value={name}>
              {name.replace(/(\d+)/, '$1 ')}
            </option>
          ))}
        </select>
      </label>
      <ul>
        {data.map((group) => {
          const waits = group.key as WaitsFor['kind'];
          const isSet = search.waits === waits;
          return <Group key={group.key} group={group} label={REASONS[waits]} isSet={isSet} set={{ waits }} />;
        })}
      </ul>
      {search.waits && <p className="small quiet remedy">{REMEDIES[search.waits]}</p>}
    </div>
  );
}

/** What failed, by its code. Without a time in the filters, within a day. */
export function ErrorGroups({ search }: { search: MessagesSearch }) {
  const { time = '24h', since } = search;
  const { data = [] } = useQuery(
    groupsQuery(() => ({ by: 'error_code', since: since ?? sinceOf(time, Date.now()) }), ['error_code', since ?? time]),
  );
  if (data.length === 0) return null;
  return (
    <div className="groups">
      <ul>
        {data.slice(0, 12).map((group) => {
          const { key: error_code } = group;
          const isSet = search.error_code === error_code;
          const set = { error_code, ...(search.time === undefined && since === undefined && { time }) };
          return <Group key={error_code} group={group} label={error_code} isSet={isSet} set={set} />;
        })}
      </ul>
    </div>
  );
}
