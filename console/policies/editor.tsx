import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Policy } from '../../contracts/api/policies/policies.js';
import { ApiError, call } from '../api/call.js';
import { requestQuery } from '../api/requests.js';
import { policiesQuery } from '../api/rules.js';
import { CopyCurl } from '../parts/copy.js';
import { Failed, Loading } from '../parts/states.js';
import { Backtest } from './backtest.js';
import { bodyOf, type Draft, draftFromRequest, emptyBody } from './draft.js';
import { editedOf, withJson } from './form.js';
import { Page } from './page.js';
import { PolicyForm } from './policy-form.js';
import { sentenceOf } from './words.js';

/** What a draft from a request does, and what it does not. */
function DraftNotice({ draft: { body, leftOut } }: { draft: Draft }) {
  return (
    <>
      <p className="notice busy">
        Drafted as narrow as can be: for this agent and this tool or sender, with exactly these arguments, for 30 days
        {body.max_calls ? ` and ${body.max_calls} calls` : ''}. Loosen what may differ, look at what it would have
        decided, and create it.
      </p>
      {leftOut.length > 0 && (
        <p className="notice wait">
          There are more arguments than a policy has room for. It applies whatever these are:{' '}
          <code>{leftOut.slice(0, 5).join(', ')}</code>
          {leftOut.length > 5 && ` and ${leftOut.length - 5} more`}.
        </p>
      )}
    </>
  );
}

/** A policy as a form, with its JSON and a backtest beside it. @param props.stored it is changed; otherwise a new one is created */
function Editor({ draft, stored, isDraft }: { draft: Draft; stored?: Policy; isDraft: boolean }) {
  const [edited, setEdited] = useState(() => editedOf(draft.body));
  const navigate = useNavigate({ from: '/policies' });
  const client = useQueryClient();
  const { body, json, problem } = edited;
  const { scope: _, ...changes } = body;
  const path = stored ? '/policies/update_policy' : '/policies/create_policy';
  const sent = stored ? { ...changes, policy_id: stored.policy_id } : body;
  const save = useMutation({
    mutationFn: () =>
      stored
        ? call('/policies/update_policy', { ...changes, policy_id: stored.policy_id })
        : call('/policies/create_policy', body),
    onSuccess: async ({ policy: { policy_id } }) => {
      void client.invalidateQueries({ queryKey: ['history', policy_id] });
      await client.invalidateQueries({ queryKey: ['policies'] });
      void navigate({ search: { policy: policy_id } });
    },
  });
  return (
    <form
      className="rule-editor"
      onSubmit={(event) => {
        event.preventDefault();
        if (problem === undefined) save.mutate();
      }}
    >
      <div className="rule-fields">
        {isDraft && <DraftNotice draft={draft} />}
        <PolicyForm body={body} isStored={stored !== undefined} change={(to) => setEdited(editedOf(to))} />
        <p className="notice">{sentenceOf(body)}</p>
        {save.error && (
          <p className="notice bad" role="alert">
            {save.error.message} {save.error instanceof ApiError && <code>{save.error.code}</code>}
          </p>
        )}
        <div className="actions save">
          <button type="submit" className="primary" disabled={save.isPending || problem !== undefined}>
            {stored ? 'Save' : 'Create'}
          </button>
          <CopyCurl path={path} body={sent} />
        </div>
      </div>
      <div className="rule-aside">
        <Backtest body={body} isAsked={isDraft} />
        <div className="field">
          <label htmlFor="policy-json">JSON</label>
          <textarea
            id="policy-json"
            className="mono"
            rows={Math.min(24, json.split('\n').length)}
            spellCheck={false}
            value={json}
            aria-invalid={problem !== undefined}
            aria-describedby="policy-json-about"
            onChange={({ target }) => setEdited(withJson(edited, target.value))}
          />
          {problem === undefined ? (
            <small id="policy-json-about" className="quiet">
              Everything the form does not show is here: skills, paths, hosts, not, quorum, reminders, webhooks.
            </small>
          ) : (
            <p id="policy-json-about" className="problem" role="alert">
              {problem}
            </p>
          )}
        </div>
      </div>
    </form>
  );
}

/** Creates a policy: an empty one, or one about a tool. */
export function NewPolicy({ tool, back }: { tool: string | undefined; back: () => void }) {
  return (
    <Page title="New policy" back={back}>
      <Editor draft={{ body: emptyBody(tool), leftOut: [] }} isDraft={false} />
    </Page>
  );
}

/** Changes a stored policy. */
export function EditPolicy({ policy, back }: { policy: Policy; back: () => void }) {
  return (
    <Page title={`Edit ${policy.name}`} back={back}>
      <Editor key={policy.policy_id} draft={{ body: bodyOf(policy), leftOut: [] }} stored={policy} isDraft={false} />
    </Page>
  );
}

/** Creates a policy that is drafted from a request. */
export function DraftedPolicy({ requestId, back }: { requestId: string; back: () => void }) {
  const request = useQuery(requestQuery(requestId));
  // With all of them no deleted one is asked for.
  const policies = useQuery(policiesQuery);
  const [nowMs] = useState(() => Date.now());
  const failed = request.data ? policies : request;
  const asking = policies.data?.find(({ policy_id }) => policy_id === request.data?.input_request.policy_id);
  return (
    <Page title="Always like this" back={back}>
      {failed.error && !failed.data && <Failed error={failed.error} retry={() => void failed.refetch()} />}
      {!failed.data && !failed.error && <Loading />}
      {request.data && policies.data && (
        <Editor key={requestId} draft={draftFromRequest(request.data, asking ?? null, nowMs)} isDraft />
      )}
    </Page>
  );
}
