import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { Policy, PolicyScope, PolicyTrace, TestPolicyResponse } from '../../contracts/api/policies/policies.js';
import { ApiError, type BodyOf, call } from '../api/call.js';
import { CopyCurl } from '../parts/copy.js';
import { objectOf } from './form.js';
import { Page } from './page.js';
import { SCOPES } from './search.js';
import { Labelled } from './typed.js';
import { DECISIONS, SCOPE_WORDS } from './words.js';

type Asked = BodyOf<'/policies/test_policy'>;

const FIELDS = [
  { name: 'tool', label: 'Tool', of: ['tool'] },
  { name: 'agent_type', label: 'Agent type', of: SCOPES },
  { name: 'instance_id', label: 'Instance', of: SCOPES },
  { name: 'user_id', label: 'User', of: SCOPES },
] as const;

const OUTCOMES: Record<PolicyTrace['outcome'], { label: string; tone: string }> = {
  decided: { label: 'decided', tone: 'good' },
  audited: { label: 'recorded', tone: 'busy' },
  not_matched: { label: 'does not apply', tone: '' },
  not_reached: { label: 'not reached', tone: '' },
  disabled: { label: 'inactive', tone: '' },
};

function Trace({ found, policyId }: { found: TestPolicyResponse; policyId: string | undefined }) {
  const { decision, matched, trace } = found;
  return (
    <section aria-label="Result">
      <h3>Result</h3>
      <p className="verdict">
        <span className={`badge ${DECISIONS[decision].tone}`}>{DECISIONS[decision].label}</span>{' '}
        {matched ? '' : 'No policy applies, so it is allowed.'}
      </p>
      <ol className="trace">
        {trace.map(({ policy_id, name, priority, outcome, explanation }) => (
          <li key={policy_id} className={policy_id === policyId ? 'current' : ''}>
            <span className="line">
              <strong className="cut">{name}</strong>
              <span className={`badge ${OUTCOMES[outcome].tone}`}>{OUTCOMES[outcome].label}</span>
            </span>
            <span className="quiet small">
              Priority {priority}. {explanation}
            </span>
          </li>
        ))}
      </ol>
      {trace.length === 0 && <p className="quiet">There are no policies about this.</p>}
    </section>
  );
}

/** A message or a request, as policies would be asked about it again. @throws ApiError */
async function askedAbout(id: string): Promise<Partial<Asked>> {
  if (id.startsWith('req_')) {
    const { request } = await call('/requests/get_by_id', { request_id: id });
    const { tool, arguments: given } = request.input_request;
    const { agent_type, user_id } = request;
    if (tool !== undefined) return { scope: 'tool', action: 'call', tool, agent_type, user_id, arguments: given ?? {} };
    return request.message_id ? askedAbout(request.message_id) : { scope: 'plan', action: 'create', user_id };
  }
  const { message } = await call('/messages/get_by_id', { message_id: id });
  const { agent_type, user_id, parts } = message;
  const named = Object.fromEntries(Object.entries({ agent_type, user_id }).filter(([, value]) => value));
  return { scope: 'admission', action: 'send', ...named, arguments: { parts, metadata: {} } };
}

/** Fills the form from a message or a request. */
function From({ fill }: { fill: (asked: Partial<Asked>) => void }) {
  const [id, setId] = useState('');
  const read = useMutation({ mutationFn: askedAbout, onSuccess: fill });
  return (
    <div className="field">
      <label htmlFor="from-id">As a message or request was</label>
      <span className="line">
        <input
          id="from-id"
          className="mono"
          placeholder="msg_… or req_…"
          value={id}
          onChange={({ target }) => setId(target.value.trim())}
        />
        <button type="button" disabled={id === '' || read.isPending} onClick={() => read.mutate(id)}>
          Fill
        </button>
      </span>
      {read.error && (
        <p className="problem" role="alert">
          {read.error.message} {read.error instanceof ApiError && <code>{read.error.code}</code>}
        </p>
      )}
    </div>
  );
}

/** The arguments as an object; a text where they are none. */
function readArguments(text: string): Record<string, unknown> | string {
  if (text.trim() === '') return {};
  try {
    const value: unknown = JSON.parse(text);
    return value === objectOf(value) ? objectOf(value) : 'The arguments must be an object.';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function ScopeFields({ asked, set }: { asked: Asked; set: (members: Partial<Asked>) => void }) {
  return (
    <div className="pair">
      <Labelled label="About">
        {(shared) => (
          <select
            {...shared}
            value={asked.scope}
            onChange={({ target }) => {
              const scope = target.value as PolicyScope;
              set({ scope, action: SCOPE_WORDS[scope].actions[0], ...(scope !== 'tool' && { tool: undefined }) });
            }}
          >
            {SCOPES.map((scope) => (
              <option key={scope} value={scope}>
                {SCOPE_WORDS[scope].label}
              </option>
            ))}
          </select>
        )}
      </Labelled>
      <Labelled label="Action">
        {(shared) => (
          <select {...shared} value={asked.action} onChange={({ target }) => set({ action: target.value })}>
            {SCOPE_WORDS[asked.scope].actions.map((action) => (
              <option key={action}>{action}</option>
            ))}
          </select>
        )}
      </Labelled>
    </div>
  );
}

/** Says what the policies would decide, and of each why. Nothing follows from it. @param props.policy is marked in the trace */
export function TryOut({ policy, back }: { policy: Policy | undefined; back: () => void }) {
  const scope = policy?.scope ?? 'admission';
  const [asked, setAsked] = useState<Asked>({ scope, action: SCOPE_WORDS[scope].actions[0] });
  const [text, setText] = useState('');
  const given = readArguments(text);
  const body: Asked = { ...asked, ...(typeof given === 'object' && text.trim() !== '' && { arguments: given }) };
  const test = useMutation({ mutationFn: () => call('/policies/test_policy', body) });
  const set = (members: Partial<Asked>) => setAsked((old) => ({ ...old, ...members }));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (typeof given === 'object') test.mutate();
  };
  return (
    <Page title={policy ? `Try ${policy.name}` : 'Try the policies'} back={back}>
      <form className="rule-editor" onSubmit={submit}>
        <div className="rule-fields">
          <From
            fill={({ arguments: filled = {}, ...members }) => {
              setAsked({ scope, action: asked.action, ...members });
              setText(JSON.stringify(filled, null, 2));
            }}
          />
          <ScopeFields asked={asked} set={set} />
          <div className="pair">
            {FIELDS.filter(({ of }) => (of as readonly string[]).includes(asked.scope)).map(({ name, label }) => (
              <Labelled key={name} label={label}>
                {(shared) => (
                  <input
                    {...shared}
                    className="mono"
                    value={asked[name] ?? ''}
                    onChange={({ target }) => set({ [name]: target.value || undefined })}
                  />
                )}
              </Labelled>
            ))}
          </div>
          <Labelled label="Arguments" about="Of a message: parts and metadata. Of a tool call: what the tool gets.">
            {(shared) => (
              <textarea
                {...shared}
                className="mono"
                rows={Math.min(16, Math.max(4, text.split('\n').length))}
                spellCheck={false}
                placeholder='{"amount": 5000}'
                aria-invalid={typeof given === 'string'}
                value={text}
                onChange={({ target }) => setText(target.value)}
              />
            )}
          </Labelled>
          {typeof given === 'string' && (
            <p className="problem" role="alert">
              {given}
            </p>
          )}
          <div className="actions save">
            <button type="submit" className="primary" disabled={test.isPending || typeof given === 'string'}>
              Try it
            </button>
            <CopyCurl path="/policies/test_policy" body={body} />
          </div>
        </div>
        <div className="rule-aside">
          {test.error && (
            <p className="notice bad" role="alert">
              {test.error.message} {test.error instanceof ApiError && <code>{test.error.code}</code>}
            </p>
          )}
          {test.data && <Trace found={test.data} policyId={policy?.policy_id} />}
          {!test.data && !test.error && (
            <p className="quiet">
              The policies are asked as they would be for real, and nothing follows from it. Here you see which one
              decides, and of each why it does or does not.
            </p>
          )}
        </div>
      </form>
    </Page>
  );
}
