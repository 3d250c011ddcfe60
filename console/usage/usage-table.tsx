import { Link } from '@tanstack/react-router';
import type { UsageRow, UsageSums } from '../../contracts/api/usage.js';
import { numberText } from '../parts/texts.js';
import { costText, type Group, type Measure, shareOf } from './search.js';

/** Why a row has no key. */
const NONE: Record<Group, string> = {
  ...{ day: 'no day', agent_type: 'no agent yet', model: 'no model named' },
  ...{ user: 'for no user', credential: 'no credential' },
};

/** What a row is of, with a link to it where there is a page. */
function Key({ by, value, isFull }: { by: Group; value: string | null | undefined; isFull: boolean }) {
  if (value === null || value === undefined) return <span className="quiet">{NONE[by]}</span>;
  switch (by) {
    case 'agent_type':
      return (
        <Link to="/fleet" search={{ type: value }}>
          {value}
        </Link>
      );
    case 'user':
      return (
        <Link to="/messages" search={{ user_id: value }}>
          {value}
        </Link>
      );
    case 'credential':
      return isFull ? (
        <Link to="/access" search={{ credential: value }}>
          {value}
        </Link>
      ) : (
        value
      );
    case 'day':
    case 'model':
      return value;
    default:
      return by satisfies never;
  }
}

/** Messages, tokens and cost of each row, with its share. */
export function UsageTable(props: {
  rows: readonly UsageRow[];
  totals: UsageSums;
  by: Group;
  measure: Measure;
  name: string;
  isFull: boolean;
}) {
  const { rows, totals, by, measure, name, isFull } = props;
  if (rows.length === 0)
    return (
      <p className="notice">Nothing was used in this time. Usage appears here as soon as a message is accepted.</p>
    );
  return (
    <table className="table usage-table">
      <thead>
        <tr>
          <th scope="col">{name}</th>
          <th scope="col">Cost</th>
          <th scope="col">Messages</th>
          <th scope="col">Tokens in</th>
          <th scope="col">Tokens out</th>
          <th scope="col">Tool calls</th>
          <th scope="col">Share</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => {
          const share = shareOf(measure, row, totals);
          return (
            <tr key={row[by] ?? ''}>
              <th scope="row">
                <Key by={by} value={row[by]} isFull={isFull} />
              </th>
              <td data-name="Cost">{costText(row.cost_usd)}</td>
              <td data-name="Messages">{numberText(row.messages)}</td>
              <td data-name="Tokens in">{numberText(row.input_tokens)}</td>
              <td data-name="Tokens out">{numberText(row.output_tokens)}</td>
              <td data-name="Tool calls">{numberText(row.tool_calls)}</td>
              <td data-name="Share">
                {Math.round(share * 100)} %
                <meter aria-label="Share" max={1} value={share} />
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
