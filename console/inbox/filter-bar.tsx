import { Link, useNavigate } from '@tanstack/react-router';
import { Icon } from '../parts/icon.js';
import { numberText } from '../parts/texts.js';
import { FIELDS, type InboxSearch } from './filters.js';

const BOXES: { box: NonNullable<InboxSearch['box']>; label: string }[] = [
  { box: 'mine', label: 'For me' },
  { box: 'open', label: 'All open' },
  { box: 'decided', label: 'Decided' },
  { box: 'all', label: 'All' },
];

/** Which requests the list has. Each choice is a link. */
export function FilterBar(props: { search: InboxSearch; count: number | undefined; isFetching: boolean }) {
  const { search, count, isFetching } = props;
  const navigate = useNavigate({ from: '/inbox' });
  const { box: shown = 'mine', request: _shown, ...set } = search;
  const active = FIELDS.filter(({ name }) => set[name as keyof typeof set] !== undefined);
  const change = (name: string, value: string) =>
    void navigate({ search: ({ request: _, ...old }) => ({ ...old, [name]: value === '' ? undefined : value }) });
  return (
    <header className="filters">
      <div className="line">
        <h1>Inbox</h1>
        <span className="quiet" role="status">
          {count !== undefined && numberText(count)}
          {isFetching && <span className="hidden"> loading</span>}
        </span>
        <button type="button" className="icon-button" popoverTarget="filters">
          <Icon name="filter" /> Filter
        </button>
      </div>
      <nav aria-label="Boxes">
        {BOXES.map(({ box, label }) => (
          <Link
            key={box}
            to="/inbox"
            search={({ request: _, ...old }) => ({ ...old, box: box === 'mine' ? undefined : box })}
            activeOptions={{ explicitUndefined: true }}
          >
            {label}
          </Link>
        ))}
      </nav>
      {active.length > 0 && (
        <ul className="chips">
          {active.map(({ name, label }) => (
            <li key={name}>
              {label}: {String(set[name as keyof typeof set])}
              <button type="button" aria-label={`Remove ${label}`} onClick={() => change(name, '')}>
                <Icon name="cross" />
              </button>
            </li>
          ))}
        </ul>
      )}
      <div id="filters" popover="auto">
        <form onSubmit={(event) => event.preventDefault()}>
          {FIELDS.map(({ name, label, values }) => (
            <div className="field" key={name}>
              <label htmlFor={`filter-${name}`}>{label}</label>
              {values ? (
                <select
                  id={`filter-${name}`}
                  value={String(set[name as keyof typeof set] ?? '')}
                  onChange={({ target }) => change(name, target.value)}
                >
                  <option value="">{name === 'sort' ? 'oldest first' : 'any'}</option>
                  {values.map((value) => (
                    <option key={value}>{value}</option>
                  ))}
                </select>
              ) : (
                <input
                  id={`filter-${name}`}
                  defaultValue={String(set[name as keyof typeof set] ?? '')}
                  key={String(set[name as keyof typeof set] ?? '')}
                  onBlur={({ target }) => change(name, target.value.trim())}
                  onKeyDown={({ key, currentTarget }) => key === 'Enter' && change(name, currentTarget.value.trim())}
                />
              )}
            </div>
          ))}
        </form>
      </div>
    </header>
  );
}
