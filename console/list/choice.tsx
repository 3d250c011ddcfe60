import type { Ref } from 'react';

/** A labelled choice among a few values, the first of which is the usual one. */
export function Choice<Value extends string>(props: {
  label: string;
  value: Value;
  options: readonly (readonly [value: Value, label: string])[];
  onChange: (value: Value) => void;
  ref?: Ref<HTMLSelectElement> | undefined;
}) {
  const { label, value, options, onChange, ref } = props;
  return (
    <select
      ref={ref}
      className="choice"
      aria-label={label}
      value={value}
      onChange={({ target }) => onChange(target.value as Value)}
    >
      {options.map(([each, text]) => (
        <option key={each} value={each}>
          {text}
        </option>
      ))}
    </select>
  );
}

/** A filter with some values, or any. @param props.text how a value is shown */
export function FilterChoice<Value extends string>(props: {
  label: string;
  any: string;
  value: Value | undefined;
  values: readonly Value[];
  change: (value: Value | undefined) => void;
  text?: (value: Value) => string;
  ref?: Ref<HTMLSelectElement>;
}) {
  const { label, any, value, values, change, text = (one: Value) => one, ref } = props;
  return (
    <Choice<Value | ''>
      ref={ref}
      label={label}
      value={value ?? ''}
      options={[['', any], ...values.map((one) => [one, text(one)] as const)]}
      onChange={(chosen) => change(chosen === '' ? undefined : chosen)}
    />
  );
}

/** A field that narrows a list while one types. */
export function FindField(props: {
  label: string;
  placeholder: string;
  value: string | undefined;
  change: (value: string | undefined) => void;
  ref: Ref<HTMLInputElement>;
}) {
  const { label, placeholder, value = '', change, ref } = props;
  return (
    <input
      ref={ref}
      type="search"
      aria-label={label}
      placeholder={placeholder}
      value={value}
      onChange={({ target }) => change(target.value || undefined)}
    />
  );
}

/** A filter that is typed. It counts with Enter, or when the field is left. */
export function TypedFilter(props: {
  id?: string;
  label: string;
  value: string | undefined;
  onChange: (value: string) => void;
}) {
  const { id, label, value = '', onChange } = props;
  const send = (typed: string) => typed.trim() !== value && onChange(typed.trim());
  return (
    <input
      id={id}
      key={value}
      type="search"
      aria-label={label}
      placeholder={label}
      defaultValue={value}
      onBlur={({ target }) => send(target.value)}
      onKeyDown={({ key, currentTarget }) => {
        if (key === 'Enter') send(currentTarget.value);
        if (key === 'Escape') currentTarget.blur();
      }}
    />
  );
}

/** An address with filters changed. An empty filter leaves it. */
export function withFilters<Search extends object>(
  search: Search,
  set: { [Name in keyof Search]?: Search[Name] | '' },
): Search {
  return Object.fromEntries(Object.entries({ ...search, ...set }).filter(([, value]) => value !== '')) as Search;
}
