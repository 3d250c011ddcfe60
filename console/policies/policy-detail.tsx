import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Policy } from '../../contracts/api/policies/policies.js';
import { ApiError, call } from '../api/call.js';
import { CopyCurl, Id } from '../parts/copy.js';
import { Dialog } from '../parts/dialog.js';
import { Fact } from '../parts/fact.js';
import { numberText } from '../parts/texts.js';
import { Ago, Countdown } from '../parts/time.js';
import { Json } from '../parts/value.js';
import { Backtest } from './backtest.js';
import { bodyOf } from './draft.js';
import { History } from './history.js';
import { callsWords, conditionWords, DECISIONS, SCOPE_WORDS, sentenceOf, termsOf, whyInactive } from './words.js';

/** Takes a policy out of force or back into it, changes it, tries it, and deletes it after one question. */
function Actions({ policy }: { policy: Policy }) {
  const { policy_id, name, enabled } = policy;
  const client = useQueryClient();
  const navigate = useNavigate({ from: '/policies' });
  const [asks, setAsks] = useState(false);
  const refresh = () => {
    void client.invalidateQueries({ queryKey: ['history', policy_id] });
    return client.invalidateQueries({ queryKey: ['policies'] });
  };
  const toggle = useMutation({
    mutationFn: () => call('/policies/update_policy', { policy_id, enabled: !enabled }),
    onSettled: refresh,
  });
  const remove = useMutation({
    mutationFn: () => call('/policies/delete_policy', { policy_id }),
    onSuccess: async () => {
      await refresh();
      void navigate({ search: ({ policy: _, ...old }) => old, replace: true });
    },
  });
  const error = toggle.error ?? remove.error;
  return (
    <div className="actions">
      <Link from="/policies" to="/policies" search={(old) => ({ ...old, panel: 'edit' as const })} className="button">
        Edit
      </Link>
      <Link from="/policies" to="/policies" search={(old) => ({ ...old, panel: 'test' as const })} className="button">
        Try it
      </Link>
      <button type="button" disabled={toggle.isPending} onClick={() => toggle.mutate()}>
        {enabled ? 'Deactivate' : 'Activate'}
      </button>
      <button type="button" disabled={remove.isPending} onClick={() => setAsks(true)}>
        Delete
      </button>
      <CopyCurl path="/policies/update_policy" body={{ policy_id, enabled: !enabled }} />
      {error && (
        <p className="problem" role="alert">
          {error.message} {error instanceof ApiError && <code>{error.code}</code>}
        </p>
      )}
      {asks && (
        <Dialog label="Delete this policy?" onClose={() => setAsks(false)}>
          <h2>Delete “{name}”?</h2>
          <p>
            It decides about nothing any more, at once. Requests that it has asked stay open until somebody decides. To
            take it out of force for a while, deactivate it.
          </p>
          <div className="buttons">
            <button
              type="button"
              className="no"
              onClick={() => {
                setAsks(false);
                remove.mutate();
              }}
            >
              Delete
            </button>
            <button type="button" onClick={() => setAsks(false)}>
              Leave it
            </button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

/** Fewer conditions are read in the sentence. */
const LISTED_FROM = 3;

/** What decides beside the conditions. */
function EvaluatorView({ evaluator }: Pick<Policy, 'evaluator'>) {
  if (!('type' in evaluator)) return null;
  const failed = evaluator.on_error === 'deny' ? 'it is denied' : 'a person is asked';
  return (
    <section>
      <h3>{evaluator.type === 'cel' ? 'Only if this is true' : 'Only if a webhook says so'}</h3>
      <pre className="code">{evaluator.type === 'cel' ? evaluator.expression : evaluator.url}</pre>
      <p className="quiet small">Where that cannot be told, {failed}.</p>
    </section>
  );
}

const isAhead = (at: string) => Date.parse(at) > Date.now();

/** One policy: all of it in plain words, and what may be done with it. */
export function PolicyDetail({ policy }: { policy: Policy }) {
  const { policy_id, name, scope, decision, description, match, reason, evaluator, priority, end_at } = policy;
  const conditions = conditionWords(match);
  const inactive = whyInactive(policy, Date.now());
  const calls = callsWords(policy);
  return (
    <article className="detail policy">
      <header>
        <div className="line title">
          <h2>{name}</h2>
          <span className={`badge ${DECISIONS[decision].tone}`}>{DECISIONS[decision].label}</span>
          {inactive && <span className="badge">{inactive}</span>}
        </div>
        <p className="prose">{sentenceOf(policy)}</p>
        {description && <p className="quiet prose">{description}</p>}
      </header>
      <Actions policy={policy} />
      <dl className="facts">
        <Fact name="About">{SCOPE_WORDS[scope].label}</Fact>
        <Fact name="Priority">{numberText(priority)}</Fact>
        <Fact name="Ends">{end_at ? isAhead(end_at) ? <Countdown at={end_at} /> : <Ago at={end_at} /> : 'never'}</Fact>
        {calls && <Fact name="Allowed">{calls}</Fact>}
        <Fact name="Changed">
          <Ago at={policy.updated_at} />
        </Fact>
      </dl>
      {conditions.length > LISTED_FROM && (
        <section>
          <h3>Applies where all of this holds</h3>
          <ul className="holds">
            {conditions.map((words) => (
              <li key={words}>{words}</li>
            ))}
          </ul>
        </section>
      )}
      <EvaluatorView evaluator={evaluator} />
      {decision === 'require_approval' && (
        <section>
          <h3>Who decides</h3>
          {termsOf(policy).map((words) => (
            <p key={words}>{words}</p>
          ))}
        </section>
      )}
      {reason && (
        <section>
          <h3>Reason that callers read</h3>
          <p className="prose">{reason}</p>
        </section>
      )}
      <Backtest key={policy_id} body={bodyOf(policy)} />
      <History target={policy_id} action="policy.*" />
      <details>
        <summary>JSON</summary>
        <Json value={policy} />
      </details>
      <footer className="quiet">
        <Id id={policy_id} />
        <CopyCurl path="/policies/get_policy_by_id" body={{ policy_id }} />
      </footer>
    </article>
  );
}
