import type { Ref } from 'react';

/** A filter with some values, or any. @param text how a value is shown */
export function Choice<Value extends string>({
  label,
  any,
  value,
  values,
  change,
  text = (one) => one,
  ref,
}: {
  label: string;
  any: string;
  value: Value | undefined;
  values: readonly Value[];
  change: (value: Value | undefined) => void;
  text?: (value: Value) => string;
  ref?: Ref<HTMLSelectElement>;
}) {
  return (
    <select
      ref={ref}
      aria-label={label}
      value={value ?? ''}
      onChange={({ target }) => change(values.find((one) => one === target.value))}
    >
      <option value="">{any}</option>
      {values.map((one) => (
        <option key={one} value={one}>
          {text(one)}
        </option>
      ))}
    </select>
  );
}
