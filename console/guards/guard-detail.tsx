import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Guard, GuardDecision } from '../../contracts/api/policies/guards.js';
import { ApiError, type BodyOf, call } from '../api/call.js';
import { CopyCurl } from '../parts/copy.js';
import { linesOf, listOf } from '../policies/form.js';
import { History } from '../policies/history.js';
import { Labelled, Typed } from '../policies/typed.js';
import { changesOf, type EditedGuard, GUARD_DECISIONS, GUARDS, looksAt, SETTINGS, type Setting } from './words.js';

function Ticks({
  setting: { label, input },
  value,
  change,
}: {
  setting: Setting;
  value: readonly unknown[];
  change: (value: string[]) => void;
}) {
  const options = Object.entries(input);
  return (
    <fieldset className="ticks">
      <legend>{label}</legend>
      {options.map(([name, words]) => (
        <label className="tick" key={name}>
          <input
            type="checkbox"
            checked={value.includes(name)}
            onChange={({ target }) =>
              change(options.map(([one]) => one).filter((one) => (one === name ? target.checked : value.includes(one))))
            }
          />
          {words}
        </label>
      ))}
    </fieldset>
  );
}

const numberOf = (text: string): number | null => (text.trim() === '' ? null : Number(text));

function Field({ setting, value, change }: { setting: Setting; value: unknown; change: (value: unknown) => void }) {
  const { label, about, input } = setting;
  if (typeof input === 'object')
    return <Ticks setting={setting} value={Array.isArray(value) ? value : []} change={change} />;
  return (
    <Labelled label={label} {...(about && { about })}>
      {(shared) =>
        input === 'lines' ? (
          <Typed
            {...shared}
            className="mono"
            rows={2}
            value={listOf(linesOf(value)) ?? []}
            show={linesOf}
            read={(text) => listOf(text) ?? []}
            change={change}
          />
        ) : (
          <input
            {...shared}
            type="number"
            min={1}
            required={input === 'number'}
            value={typeof value === 'number' ? value : ''}
            onChange={({ target }) => change(numberOf(target.value))}
          />
        )
      }
    </Labelled>
  );
}

/** The settings of a guard, and what saves those that were changed. */
function Settings({ guard }: { guard: Guard }) {
  const client = useQueryClient();
  const [edited, setEdited] = useState<EditedGuard>({ ...guard, config: guard.config });
  const changes = changesOf(guard, edited);
  const save = useMutation({
    mutationFn: (body: BodyOf<'/policies/update_guard'>) => call('/policies/update_guard', body),
    onSuccess: async () => {
      void client.invalidateQueries({ queryKey: ['history', guard.guard] });
      await client.invalidateQueries({ queryKey: ['guards'] });
    },
  });
  const settings: Setting[] = SETTINGS[guard.guard];
  return (
    <form
      className="guard-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (changes) save.mutate(changes);
      }}
    >
      <label className="tick">
        <input
          type="checkbox"
          checked={edited.enabled}
          onChange={({ target }) => setEdited({ ...edited, enabled: target.checked })}
        />
        Switched on
      </label>
      <Labelled label="With what it finds" about={`A finding ${GUARD_DECISIONS[edited.decision].does}.`}>
        {(shared) => (
          <select
            {...shared}
            value={edited.decision}
            onChange={({ target }) => setEdited({ ...edited, decision: target.value as GuardDecision })}
          >
            {Object.entries(GUARD_DECISIONS).map(([value, { label }]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Labelled>
      <div className={guard.guard === 'limits' ? 'pair' : ''}>
        {settings.map((setting) => (
          <Field
            key={setting.name}
            setting={setting}
            value={edited.config[setting.name]}
            change={(value) => setEdited({ ...edited, config: { ...edited.config, [setting.name]: value } })}
          />
        ))}
      </div>
      {save.error && (
        <p className="notice bad" role="alert">
          {save.error.message} {save.error instanceof ApiError && <code>{save.error.code}</code>}
        </p>
      )}
      <div className="actions">
        <button type="submit" className="primary" disabled={!changes || save.isPending}>
          Save
        </button>
        {changes && (
          <button type="button" onClick={() => setEdited({ ...guard, config: guard.config })}>
            Undo
          </button>
        )}
        {changes && <CopyCurl path="/policies/update_guard" body={changes} />}
        {save.isSuccess && !changes && (
          <span className="quiet" role="status">
            Saved. It is in force on every node within a second.
          </span>
        )}
      </div>
    </form>
  );
}

/** One guard: what it looks at and does, and its settings. */
export function GuardDetail({ guard }: { guard: Guard }) {
  const { enabled, decision } = guard;
  return (
    <article className="detail">
      <header>
        <div className="line title">
          <h2>{GUARDS[guard.guard].label}</h2>
          <span className={`badge ${enabled ? GUARD_DECISIONS[decision].tone : ''}`}>
            {enabled ? GUARD_DECISIONS[decision].label : 'off'}
          </span>
        </div>
        <p className="prose">{GUARDS[guard.guard].finds}</p>
        <p className="quiet">It looks at {looksAt(guard)}.</p>
      </header>
      <Settings guard={guard} />
      <History target={guard.guard} action="guard.update" />
      <footer className="quiet">
        <code>{guard.guard}</code>
        <CopyCurl path="/policies/get_guards" body={{}} />
      </footer>
    </article>
  );
}
