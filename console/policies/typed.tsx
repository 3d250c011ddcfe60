import { type ReactNode, useId, useState } from 'react';

/** A field whose text stays as it is typed while it stands for the same value. */
function useTyped<Value>(value: Value, show: (value: Value) => string, read: (text: string) => Value) {
  const [typed, setTyped] = useState(() => show(value));
  const isSame = JSON.stringify(read(typed)) === JSON.stringify(value);
  return [isSame ? typed : show(value), setTyped] as const;
}

/** A label, a field that takes the place of the children's argument, and a word about it. */
export function Labelled({
  label,
  about,
  children,
}: {
  label: string;
  about?: string;
  children: (shared: { id: string; 'aria-describedby'?: string }) => ReactNode;
}) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, ...(about && { 'aria-describedby': `${id}-about` }) })}
      {about && (
        <small id={`${id}-about`} className="quiet">
          {about}
        </small>
      )}
    </div>
  );
}

/** A value that is typed. @param props.rows a field of several lines */
export function Typed<Value>(props: {
  value: Value;
  show: (value: Value) => string;
  read: (text: string) => Value;
  change: (value: Value) => void;
  rows?: number;
  id?: string;
  'aria-label'?: string;
  'aria-describedby'?: string;
  className?: string;
  placeholder?: string;
}) {
  const { value, show, read, change, rows, ...shared } = props;
  const [text, setText] = useTyped(value, show, read);
  const onChange = ({ target }: { target: { value: string } }) => {
    setText(target.value);
    change(read(target.value));
  };
  if (rows === undefined) return <input {...shared} value={text} spellCheck={false} onChange={onChange} />;
  const shownRows = Math.max(rows, text.split('\n').length);
  return <textarea {...shared} rows={shownRows} value={text} spellCheck={false} onChange={onChange} />;
}
