import { Icon } from '../parts/icon.js';
import { type Condition, readValue, valueText } from './form.js';
import { Typed } from './typed.js';
import { OPERATORS } from './words.js';

const asText = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

/** Conditions on members of the arguments, each in a row. Taking one away lets any value stand there. */
export function Conditions({
  conditions,
  change,
}: {
  conditions: readonly Condition[];
  change: (conditions: Condition[]) => void;
}) {
  const set = (at: number, members: Partial<Condition>) =>
    change(conditions.map((each, index) => (index === at ? { ...each, ...members } : each)));
  return (
    <fieldset className="conditions">
      <legend>Arguments</legend>
      {conditions.length > 0 && (
        <ul>
          {conditions.map(({ path, op, value }, index) => {
            // An expression is a text whatever it looks like.
            const isPattern = op === 'matches';
            return (
              // biome-ignore lint/suspicious/noArrayIndexKey: conditions have no names, and fields show their values
              <li key={index}>
                <input
                  aria-label={`Member ${index + 1}`}
                  className="mono"
                  placeholder="amount"
                  value={String(path)}
                  onChange={({ target }) => set(index, { path: target.value })}
                />
                <select
                  aria-label={`Comparison ${index + 1}`}
                  value={op}
                  onChange={({ target }) => set(index, { op: target.value })}
                >
                  {Object.entries(OPERATORS).map(([name, label]) => (
                    <option key={name} value={name}>
                      {label}
                    </option>
                  ))}
                </select>
                <Typed
                  aria-label={`Value ${index + 1}`}
                  className="mono"
                  value={value}
                  show={isPattern ? asText : valueText}
                  read={isPattern ? (text) => text : readValue}
                  change={(to) => set(index, { value: to })}
                />
                <button
                  type="button"
                  className="icon-button"
                  aria-label={`Remove condition ${index + 1}`}
                  onClick={() => change(conditions.filter((_, at) => at !== index))}
                >
                  <Icon name="cross" />
                </button>
              </li>
            );
          })}
        </ul>
      )}
      <button type="button" className="link" onClick={() => change([...conditions, { path: '', op: 'eq', value: '' }])}>
        Add a condition
      </button>
      <small className="quiet">
        All must hold. Members by their names with dots between them, * for any: items.*.price. A list is written as
        ["a", "b"].
      </small>
    </fieldset>
  );
}
