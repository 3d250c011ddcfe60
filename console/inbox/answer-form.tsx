import { useEffect, useId, useRef, useState } from 'react';
import type { RequestRecord } from '../../contracts/api/policies/requests.js';
import { FIELD_PREFIX, type FormField, formFields, postedValues } from '../../contracts/forms/form-fields.js';
import { Changes } from '../parts/value.js';
import { type Answer, drafts } from './decisions.js';
import { WORDS } from './words.js';

function Field({ field, value, set }: { field: FormField; value: string; set: (value: string) => void }) {
  const { name, label, description, input, options, required, bounds } = field;
  const id = useId();
  const shared = { id, name, required, 'aria-describedby': description ? `${id}-about` : undefined };
  const about = description && (
    <small id={`${id}-about`} className="quiet">
      {description}
    </small>
  );
  if (input === 'checkbox')
    return (
      <label className="tick" htmlFor={id}>
        <input
          {...shared}
          type="checkbox"
          checked={value === 'true'}
          onChange={() => set(value === 'true' ? '' : 'true')}
        />
        {label} {about}
      </label>
    );
  return (
    <div className="field">
      <label htmlFor={id}>
        {label}
        {required && <span aria-hidden="true"> *</span>}
      </label>
      {about}
      {input === 'select' ? (
        <select {...shared} value={value} onChange={({ target }) => set(target.value)}>
          <option value="">–</option>
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      ) : input === 'list' ? (
        <textarea
          {...shared}
          rows={3}
          placeholder="One value a line"
          value={value}
          onChange={({ target }) => set(target.value)}
        />
      ) : (
        <input
          {...shared}
          {...boundsOf(bounds)}
          type={input}
          value={value}
          onChange={({ target }) => set(target.value)}
        />
      )}
    </div>
  );
}

/** The bounds of an input as React names them. */
function boundsOf({ minlength, maxlength, ...bounds }: Record<string, string>) {
  return {
    ...bounds,
    ...(minlength !== undefined && { minLength: Number(minlength) }),
    ...(maxlength !== undefined && { maxLength: Number(maxlength) }),
  };
}

/** A point in time is entered in the reader's zone, and sent in UTC. */
function sentText({ input }: FormField, value: string): string {
  return input === 'datetime-local' && value !== '' ? new Date(value).toISOString() : value;
}

function shownText({ input, initial }: FormField): string {
  if (input !== 'datetime-local' || initial === '') return initial;
  const at = new Date(`${initial}Z`);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** What the arguments become; a text where they are no JSON object. */
function readArguments(text: string): Record<string, unknown> | string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
    return 'The arguments must be an object.';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** How the keyboard reaches the answer of the request that is shown. */
export interface AnswerKeys {
  yes(): void;
  no(): void;
  edit(): void;
  comment(): void;
}

/** The answer to a request: its form, its arguments to edit, a comment, and the two buttons. */
export function AnswerForm(props: {
  request: RequestRecord;
  decide: (answer: Answer) => void;
  keys: { current: AnswerKeys | null };
}) {
  const { request, decide, keys } = props;
  const { request_id, input_request: asked } = request;
  const fields = asked.kind === 'form' ? formFields(asked) : [];
  const draft = drafts.get(request_id) ?? {};
  const [comment, setComment] = useState(draft.comment ?? '');
  const [edited, setEdited] = useState(draft.arguments);
  const [values, setValues] = useState(
    draft.form ?? Object.fromEntries(fields.map((field) => [field.name, shownText(field)])),
  );
  const id = useId();
  const form = useRef<HTMLFormElement>(null);
  const editor = useRef<HTMLTextAreaElement>(null);
  const note = useRef<HTMLTextAreaElement>(null);

  const given = asked.arguments;
  const read = edited === undefined || !given ? undefined : readArguments(edited);
  const problem = typeof read === 'string' ? read : undefined;
  const words = WORDS[asked.kind];

  useEffect(() => {
    const isTouched = comment !== '' || edited !== undefined || fields.length > 0;
    if (isTouched)
      drafts.set(request_id, { comment, ...(edited !== undefined && { arguments: edited }), form: values });
  }, [request_id, comment, edited, values, fields.length]);

  const said = comment.trim() === '' ? {} : { comment: comment.trim() };
  const yes = () => {
    if (problem !== undefined) return editor.current?.focus();
    if (!form.current?.reportValidity()) return;
    const posted = new URLSearchParams(
      fields.map((field) => [`${FIELD_PREFIX}${field.name}`, sentText(field, values[field.name] ?? '')]),
    );
    const changed = typeof read === 'object' ? { arguments: read } : {};
    const data = asked.kind === 'form' ? { data: postedValues(fields, posted) } : {};
    decide({ resolution: words.yes[1], ...said, ...changed, ...data });
  };
  const no = () => decide({ resolution: words.no[1], ...said });
  const edit = () => {
    if (!given) return;
    setEdited((text) => text ?? JSON.stringify(given, null, 2));
    requestAnimationFrame(() => editor.current?.focus());
  };
  useEffect(() => {
    keys.current = { yes, no, edit, comment: () => note.current?.focus() };
    return () => {
      keys.current = null;
    };
  });

  return (
    <form
      ref={form}
      className="answer"
      noValidate={false}
      onSubmit={(event) => {
        event.preventDefault();
        yes();
      }}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) yes();
        if (event.key === 'Escape' && event.target instanceof HTMLElement) event.target.blur();
      }}
    >
      {fields.map((field) => (
        <Field
          key={field.name}
          field={field}
          value={values[field.name] ?? ''}
          set={(value) => setValues((all) => ({ ...all, [field.name]: value }))}
        />
      ))}
      {edited !== undefined && given && (
        <div className="field">
          <label htmlFor={`${id}-edited`}>Arguments that you approve instead</label>
          <textarea
            id={`${id}-edited`}
            ref={editor}
            className="mono"
            rows={Math.min(14, edited.split('\n').length + 1)}
            spellCheck={false}
            value={edited}
            aria-invalid={problem !== undefined}
            onChange={({ target }) => setEdited(target.value)}
          />
          {problem === undefined ? (
            <Changes before={given} after={read as Record<string, unknown>} />
          ) : (
            <p className="problem" role="alert">
              {problem}
            </p>
          )}
        </div>
      )}
      <div className="field">
        <label htmlFor={`${id}-comment`}>
          Comment <kbd>C</kbd>
        </label>
        <textarea
          id={`${id}-comment`}
          ref={note}
          rows={2}
          maxLength={4096}
          placeholder="Optional. The agent and the audit trail get it."
          value={comment}
          onChange={({ target }) => setComment(target.value)}
        />
      </div>
      <div className="buttons">
        <button type="submit" className="yes">
          {edited === undefined ? words.yes[0] : `${words.yes[0]} as edited`} <kbd>A</kbd>
        </button>
        <button type="button" className="no" onClick={no}>
          {words.no[0]} <kbd>R</kbd>
        </button>
        {given && edited === undefined && (
          <button type="button" onClick={edit}>
            Edit <kbd>E</kbd>
          </button>
        )}
      </div>
    </form>
  );
}
