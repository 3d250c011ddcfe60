import type { ReactNode } from 'react';
import { Split } from '../parts/split.js';
import { Failed, Loading } from '../parts/states.js';
import { More } from './more.js';

/** What is read for a list, as a query has it. */
interface Reading {
  isPending: boolean;
  data: unknown;
  error: unknown;
  refetch: () => unknown;
}

/** The same, where it is read page by page. */
type Pages = Reading & Parameters<typeof More>[0];

/**
 * A list with its filters, and what is selected of it beside it.
 * @param props.name the heading, to which the way back leads
 * @param props.label what the list holds, and what one of it is
 * @param props.count how many there are, in words
 * @param props.actions buttons beside the heading
 * @param props.idOf the id of a row, which is that of its element too
 * @param props.groupOf what a row stands under, for rows that come in groups
 * @param props.empty shown where there are no rows
 * @param props.hint what selecting one is for
 * @param props.children what is selected
 */
export function ListView<Row>(props: {
  name: string;
  label: [many: string, one: string];
  className?: string | undefined;
  count?: ReactNode;
  actions?: ReactNode;
  filters: ReactNode;
  list: Reading | Pages;
  rows: readonly Row[];
  idOf: (row: Row) => string;
  groupOf?: (row: Row) => string;
  row: (row: Row, isCurrent: boolean) => ReactNode;
  empty: ReactNode;
  current: string | undefined;
  close: () => void;
  hint: string;
  children: ReactNode;
}) {
  const { name, label, className, count, actions, filters, list, rows, groupOf = () => '', empty } = props;
  const groups = Map.groupBy(rows, groupOf);
  return (
    <Split
      name={name}
      label={label}
      className={className}
      isOpen={props.current !== undefined}
      close={props.close}
      list={
        <>
          <header className="filters">
            <div className="line">
              <h1>{name}</h1>
              <span className="quiet" role="status">
                {count}
              </span>
              {actions && <span className="line at-end">{actions}</span>}
            </div>
            {filters}
          </header>
          <div className="entries">
            {list.isPending && <Loading />}
            {list.error !== null && !list.data && <Failed error={list.error} retry={() => void list.refetch()} />}
            {list.data !== undefined && rows.length === 0 && empty}
            {[...groups].map(([group, members]) => (
              <section key={group} aria-label={group || undefined}>
                {group && <h2 className="group-name">{group}</h2>}
                <ul>
                  {members.map((row) => (
                    <li key={props.idOf(row)} id={props.idOf(row)}>
                      {props.row(row, props.idOf(row) === props.current)}
                    </li>
                  ))}
                </ul>
              </section>
            ))}
            {'fetchNextPage' in list && <More {...list} />}
          </div>
        </>
      }
    >
      {props.current === undefined ? <p className="empty quiet">{props.hint}</p> : props.children}
    </Split>
  );
}
