import type { PolicyDecision, PolicyScope } from '../../contracts/api/policies/policies.js';
import { Conditions } from './conditions.js';
import type { PolicyBody } from './draft.js';
import { conditionsOf, countsCalls, linesOf, listOf, localTime, objectOf, withMembers } from './form.js';
import { SCOPES } from './search.js';
import { Labelled, Typed } from './typed.js';
import { DECISIONS, SCOPE_WORDS } from './words.js';

type Change = (members: { [Name in keyof PolicyBody]?: PolicyBody[Name] | undefined }) => void;

/** What the policy is called, does, and about what. */
function Effect({ body, isStored, change }: { body: PolicyBody; isStored: boolean; change: Change }) {
  return (
    <>
      <Labelled label="Name">
        {(shared) => (
          <input
            {...shared}
            required
            maxLength={128}
            value={String(body.name ?? '')}
            onChange={({ target }) => change({ name: target.value })}
          />
        )}
      </Labelled>
      <div className="pair">
        <Labelled label="Effect">
          {(shared) => (
            <select
              {...shared}
              value={body.decision}
              onChange={({ target }) => change({ decision: target.value as PolicyDecision })}
            >
              {Object.entries(DECISIONS).map(([value, { label }]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Labelled>
        <Labelled label="About" {...(isStored && { about: 'This stays as it was created.' })}>
          {(shared) => (
            <select
              {...shared}
              disabled={isStored}
              value={body.scope}
              onChange={({ target }) => change({ scope: target.value as PolicyScope })}
            >
              {SCOPES.map((scope) => (
                <option key={scope} value={scope}>
                  {SCOPE_WORDS[scope].label}
                </option>
              ))}
            </select>
          )}
        </Labelled>
      </div>
      <Labelled label="Description">
        {(shared) => (
          <textarea
            {...shared}
            rows={2}
            maxLength={1024}
            placeholder="For people who read the rules"
            value={String(body.description ?? '')}
            onChange={({ target }) => change({ description: target.value })}
          />
        )}
      </Labelled>
    </>
  );
}

/** When it applies. */
function When({ body, change }: { body: PolicyBody; change: Change }) {
  const match = objectOf(body.match);
  const evaluator = objectOf(body.evaluator);
  const setMatch = (members: Record<string, unknown>) => change({ match: withMembers(match, members) });
  const lists = [
    ...(body.scope === 'tool' ? [{ name: 'tools', label: 'Tools', example: 'payments.*' }] : []),
    { name: 'agent_types', label: 'Agent types', example: 'buyer' },
  ];
  return (
    <>
      <div className={lists.length > 1 ? 'pair' : ''}>
        {lists.map(({ name, label, example }) => (
          <Labelled key={name} label={label} about="One a line; * stands for any text. None: all.">
            {(shared) => (
              <Typed
                {...shared}
                className="mono"
                placeholder={example}
                rows={1}
                value={listOf(linesOf(match[name]))}
                show={linesOf}
                read={listOf}
                change={(value) => setMatch({ [name]: value })}
              />
            )}
          </Labelled>
        ))}
      </div>
      <Conditions
        conditions={conditionsOf(match)}
        change={(conditions) => setMatch({ arguments: conditions.length > 0 ? conditions : undefined })}
      />
      {evaluator.type !== 'webhook' && (
        <Labelled label="Only if this is true (CEL)" about="Empty: the conditions decide alone.">
          {(shared) => (
            <textarea
              {...shared}
              className="mono"
              rows={Math.min(6, 1 + Math.ceil(String(evaluator.expression ?? '').length / 48))}
              maxLength={2048}
              spellCheck={false}
              placeholder='request.session.user_id == "ada"'
              value={String(evaluator.expression ?? '')}
              onChange={({ target }) => {
                const { type: _, expression: __, on_error, ...terms } = evaluator;
                const cel = target.value && {
                  type: 'cel',
                  expression: target.value,
                  ...(on_error !== undefined && { on_error }),
                };
                change({ evaluator: { ...terms, ...(cel || {}) } as PolicyBody['evaluator'] });
              }}
            />
          )}
        </Labelled>
      )}
    </>
  );
}

/** In which order, until when, what callers read, and who may decide. */
function Terms({ body, change }: { body: PolicyBody; change: Change }) {
  return (
    <>
      <div className="pair">
        <Labelled label="Priority" about="The lowest is looked at first.">
          {(shared) => (
            <input
              {...shared}
              type="number"
              step={1}
              value={String(body.priority ?? '')}
              onChange={({ target }) => change({ priority: target.value === '' ? undefined : Number(target.value) })}
            />
          )}
        </Labelled>
        <Labelled label="Ends" about="Empty: without an end.">
          {(shared) => (
            <input
              {...shared}
              type="datetime-local"
              value={localTime(body.end_at)}
              onChange={({ target }) =>
                change({ end_at: target.value === '' ? null : new Date(target.value).toISOString() })
              }
            />
          )}
        </Labelled>
      </div>
      {countsCalls(body) && (
        <Labelled label="At most … calls" about="Then it is used up, and the next policy decides. Empty: any number.">
          {(shared) => (
            <input
              {...shared}
              type="number"
              min={1}
              max={1_000_000}
              step={1}
              value={String(body.max_calls ?? '')}
              onChange={({ target }) => change({ max_calls: target.value === '' ? null : Number(target.value) })}
            />
          )}
        </Labelled>
      )}
      <Labelled label="Reason" about="Callers, agents and approvers read it.">
        {(shared) => (
          <textarea
            {...shared}
            rows={2}
            maxLength={1024}
            value={String(body.reason ?? '')}
            onChange={({ target }) => change({ reason: target.value })}
          />
        )}
      </Labelled>
      {body.decision === 'require_approval' && (
        <Labelled
          label="Approvers"
          about="One a line: teams, people, credentials, scopes or Slack users, beside the scope admin."
        >
          {(shared) => (
            <Typed
              {...shared}
              rows={1}
              placeholder="finance"
              value={listOf(linesOf(body.approvers)) ?? []}
              show={linesOf}
              read={(text) => listOf(text) ?? []}
              change={(approvers) => change({ approvers })}
            />
          )}
        </Labelled>
      )}
      <label className="tick">
        <input
          type="checkbox"
          checked={body.enabled !== false}
          onChange={({ target }) => change({ enabled: target.checked })}
        />
        Active
      </label>
    </>
  );
}

/** The usual members of a policy. Whatever else it has stays as the JSON says. @param props.isStored the scope cannot change any more */
export function PolicyForm({
  body,
  isStored,
  change,
}: {
  body: PolicyBody;
  isStored: boolean;
  change: (body: PolicyBody) => void;
}) {
  const set: Change = (members) => {
    const changed = withMembers(body, members);
    change(countsCalls(changed) ? changed : { ...changed, max_calls: null });
  };
  return (
    <>
      <Effect body={body} isStored={isStored} change={set} />
      <h3>When it applies</h3>
      <When body={body} change={set} />
      <h3>Terms</h3>
      <Terms body={body} change={set} />
    </>
  );
}
