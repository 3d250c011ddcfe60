import { Link, useNavigate } from '@tanstack/react-router';
import { type RefObject, useState } from 'react';
import { CopyCurl } from '../parts/copy.js';
import { Icon } from '../parts/icon.js';
import { activeFields, countText, FIELDS, type MessagesSearch, queryOf } from './filters.js';

const VIEWS: { label: string; search: MessagesSearch }[] = [
  { label: 'All', search: {} },
  { label: 'Working', search: { state: 'working' } },
  { label: 'Failed', search: { state: 'failed' } },
  { label: 'Stuck', search: { view: 'stuck' } },
];

/** The view that an address belongs to. */
function viewOf({ view, state }: MessagesSearch): string {
  if (view === 'stuck') return 'Stuck';
  return VIEWS.find(({ search }) => search.state === state && state !== undefined)?.label ?? 'All';
}

/** `2026-11-28T14:05` of the own time zone, as `datetime-local` has it. */
function localOf(iso: string | undefined): string {
  if (iso === undefined) return '';
  const at = new Date(iso);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function Field({
  field,
  value,
  change,
}: {
  field: (typeof FIELDS)[number];
  value: string;
  change: (to: string) => void;
}) {
  const { name, label, values, isTime } = field;
  const id = `filter-${name}`;
  if (values)
    return (
      <select id={id} value={value} onChange={({ target }) => change(target.value)}>
        <option value="">any</option>
        {values.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    );
  if (isTime)
    return (
      <input
        id={id}
        type="datetime-local"
        value={localOf(value || undefined)}
        onChange={({ target }) => change(target.value === '' ? '' : new Date(target.value).toISOString())}
      />
    );
  return (
    <input
      id={id}
      key={value}
      defaultValue={value}
      aria-label={label}
      onBlur={({ target }) => target.value.trim() !== value && change(target.value.trim())}
      onKeyDown={({ key, currentTarget }) => key === 'Enter' && change(currentTarget.value.trim())}
    />
  );
}

/** Which messages the list has. Each choice is a link. */
export function FilterBar(props: {
  search: MessagesSearch;
  counted: { count: number; count_estimated?: true } | undefined;
  isFetching: boolean;
  words: RefObject<HTMLInputElement | null>;
}) {
  const { search, counted, isFetching, words } = props;
  const navigate = useNavigate({ from: '/messages' });
  const [typed, setTyped] = useState<string | null>(null);
  const shown = viewOf(search);
  const own = VIEWS.find(({ label }) => label === shown)?.search ?? {};
  const chips = activeFields(search).filter(({ name }) => own[name] === undefined);
  const change = (set: Partial<MessagesSearch>) =>
    void navigate({ search: ({ message: _, ...old }) => ({ ...old, ...set }) });
  const find = () => {
    if (typed !== null && typed.trim() !== (search.text ?? '')) change({ text: typed.trim() || undefined });
    setTyped(null);
  };
  return (
    <header className="filters message-filters">
      <div className="line">
        <h1>Messages</h1>
        <span className="quiet" role="status">
          {counted && countText(counted)}
          {counted && search.text !== undefined && counted.count_estimated && ' so far'}
          {isFetching && <span className="hidden"> loading</span>}
        </span>
        <span className="curl">
          <CopyCurl path="/messages/get" body={queryOf(search, Date.now())} />
        </span>
      </div>
      <nav aria-label="Views">
        {VIEWS.map(({ label, search: to }) => (
          <Link
            key={label}
            to="/messages"
            search={({ message: _, view: __, waits: ___, longer: ____, state: _____, ...old }) => ({
              ...old,
              // Without an end, errors of years would be counted.
              ...(to.state === 'failed'
                ? { time: old.since ? undefined : (old.time ?? '24h') }
                : { error_code: undefined }),
              ...to,
            })}
            aria-current={label === shown ? 'page' : undefined}
            activeOptions={{ exact: true }}
          >
            {label}
          </Link>
        ))}
      </nav>
      <search>
        <form
          className="line find"
          onSubmit={(event) => {
            event.preventDefault();
            find();
          }}
        >
          <Icon name="search" />
          <input
            ref={words}
            type="search"
            aria-label="Find words"
            placeholder="Find words in messages, answers and errors"
            maxLength={256}
            value={typed ?? search.text ?? ''}
            onChange={({ target }) => setTyped(target.value)}
            onBlur={find}
            onKeyDown={({ key, currentTarget }) => key === 'Escape' && currentTarget.blur()}
          />
          <button type="button" className="icon-button" popoverTarget="message-filters">
            <Icon name="filter" /> Filter
          </button>
        </form>
      </search>
      {chips.length > 0 && (
        <ul className="chips">
          {chips.map(({ name, label }) => (
            <li key={name}>
              <span className="cut">
                {label}: {name === 'since' || name === 'until' ? localOf(search[name]).replace('T', ' ') : search[name]}
              </span>
              <button type="button" aria-label={`Remove ${label}`} onClick={() => change({ [name]: undefined })}>
                <Icon name="cross" />
              </button>
            </li>
          ))}
        </ul>
      )}
      <div id="message-filters" popover="auto" className="filter-fields">
        <form onSubmit={(event) => event.preventDefault()}>
          {FIELDS.map((field) => (
            <div className="field" key={field.name}>
              <label htmlFor={`filter-${field.name}`}>{field.label}</label>
              <Field
                field={field}
                value={String(search[field.name] ?? '')}
                change={(to) => change({ [field.name]: to === '' ? undefined : to })}
              />
            </div>
          ))}
        </form>
      </div>
    </header>
  );
}
