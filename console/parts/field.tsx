import { type InputHTMLAttributes, useId } from 'react';

type Native = Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange' | 'value' | 'id'>;

/** A labelled line of text, with a hint below it. Takes what an `<input>` takes. */
export function TextField(
  props: Native & { label: string; hint?: string; value: string; onChange: (value: string) => void },
) {
  const { label, hint, onChange, ...rest } = props;
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        aria-describedby={hint && `${id}-hint`}
        {...rest}
        onChange={({ target }) => onChange(target.value)}
      />
      {hint && (
        <span id={`${id}-hint`} className="quiet small">
          {hint}
        </span>
      )}
    </div>
  );
}
