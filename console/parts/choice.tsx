/** A labelled choice among a few values, the first of which is the usual one. */
export function Choice<Value extends string>(props: {
  label: string;
  value: Value;
  options: readonly (readonly [value: Value, label: string])[];
  onChange: (value: Value) => void;
}) {
  const { label, value, options, onChange } = props;
  return (
    <select
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
