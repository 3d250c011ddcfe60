import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Artifact, Part } from '../../contracts/a2a/parts.js';
import type { MessageRecord } from '../../contracts/api/messages.js';
import { asksPerson, isTerminal } from '../../contracts/message-states.js';
import { call } from '../api/call.js';
import { instanceName } from '../fleet/instance-name.js';
import { CopyCurl } from '../parts/copy.js';
import { Badge } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Ago, durationText } from '../parts/time.js';
import { Parts } from '../parts/value.js';
import { Question } from './question.js';
import { type Turn, talks } from './talks.js';
import { remedyOf } from './turn.js';

/** What is shown of a message: of its record, of what this tab has heard of it since, or of both. */
export interface Shown {
  key: string;
  record?: MessageRecord;
  turn?: Turn;
}

const isOver = (state: string) => isTerminal(state) || state === 'rejected';

/** The newer of record and stream. */
function newestOf({ record, turn }: Shown): { state: string; artifacts: Artifact[]; status: string } {
  const live = turn?.live;
  if (live && !(record && isOver(record.state)))
    return { state: live.state, artifacts: live.artifacts, status: live.status };
  // Of a message that was canceled the record has no output, and this tab what came of it until then.
  const artifacts = record?.artifacts.length ? record.artifacts : (live?.artifacts ?? []);
  return { state: record?.state ?? 'submitted', artifacts, status: '' };
}

function Problem({ code, text, children }: { code: string; text: string; children?: React.ReactNode }) {
  return (
    <div className="notice bad" role="alert">
      <strong>{code}</strong> {text}
      <span className="remedy">{remedyOf(code)}</span>
      {children}
    </div>
  );
}

/** What an agent does now, and the button that stops it. */
function Working({
  messageId,
  state,
  status,
  agent,
}: {
  messageId: string;
  state: string;
  status: string;
  agent: string;
}) {
  const client = useQueryClient();
  const cancel = useMutation({
    mutationFn: () => call('/messages/cancel', { message_id: messageId }),
    onSettled: () => client.invalidateQueries({ queryKey: ['talk'] }),
  });
  return (
    <div className="working" role="status">
      <span className="dots" aria-hidden="true" />
      <span className="quiet">
        {status || (state === 'submitted' ? `Waiting for ${agent}` : `${agent} is working`)}
      </span>
      <button type="button" disabled={cancel.isPending} onClick={() => cancel.mutate()}>
        Cancel
      </button>
      <CopyCurl path="/messages/cancel" body={{ message_id: messageId }} />
      {cancel.error && <span className="problem">{cancel.error.message}</span>}
    </div>
  );
}

function Foot({ record }: { record: MessageRecord }) {
  const { message_id, duration_ms, usage, instance_id, completed_at } = record;
  return (
    <footer className="quiet small">
      {instance_id && <span>{instanceName(instance_id)}</span>}
      {duration_ms !== undefined && (
        <span>{duration_ms < 1_000 ? `${duration_ms} ms` : durationText(duration_ms)}</span>
      )}
      {usage && <span>{numberText(usage.input_tokens + usage.output_tokens)} tokens</span>}
      {completed_at && <Ago at={completed_at} />}
      <Link to="/messages/$messageId" params={{ messageId: message_id }} search={{}}>
        Open message
      </Link>
    </footer>
  );
}

/** One message of a conversation and its answer. @param props.edit where one that could not be sent is written anew */
export function TurnView({ shown, edit }: { shown: Shown; edit?: (key: string) => void }) {
  const { key, record: listed, turn } = shown;
  // A long list leaves out contents; the message itself has them.
  const whole = useQuery({
    queryKey: ['message', listed?.message_id],
    queryFn: async () => (await call('/messages/get_by_id', { message_id: listed?.message_id ?? '' })).message,
    enabled: listed?.truncated === true,
  });
  const record = whole.data ?? listed;
  const { state, artifacts, status } = newestOf({ key, ...(record && { record }), ...(turn && { turn }) });
  const parts: readonly Part[] = record?.parts ?? turn?.parts ?? [];
  const messageId = record?.message_id ?? turn?.live?.messageId;
  const agent = record?.agent_type ?? turn?.agentType ?? 'an agent';
  const asked = record?.input_request;
  const answer = artifacts.filter((artifact) => artifact.parts.length > 0);
  return (
    <li className="turn">
      <article className="said" aria-label="You">
        <Parts parts={parts} />
      </article>
      <article className="answer-of" aria-label={agent}>
        <header className="line">
          <strong>{agent}</strong>
          {state === 'canceled' && <Badge state="canceled" />}
        </header>
        {answer.map((artifact) => (
          <div key={artifact.artifactId} className="artifact">
            {artifact.name && <p className="quiet small">{artifact.name}</p>}
            <Parts parts={artifact.parts} markdown />
          </div>
        ))}
        {state === 'completed' && answer.length === 0 && <p className="quiet">It answered nothing.</p>}
        {turn?.error && !record && (
          <Problem code={turn.error.code} text={turn.error.message}>
            <button type="button" onClick={() => edit?.(key)}>
              Edit and send again
            </button>
            <button type="button" onClick={() => talks.forget(key)}>
              Discard
            </button>
          </Problem>
        )}
        {state === 'failed' && (
          <Problem code={record?.error?.code ?? 'It failed'} text={record?.error?.message ?? status} />
        )}
        {asked && !isOver(state) && <Question requestId={asked.request_id} />}
        {messageId && !turn?.error && !isOver(state) && !(asked && asksPerson(state)) && (
          <Working messageId={messageId} state={state} status={status} agent={agent} />
        )}
        {!messageId && !turn?.error && <p className="quiet">Sending …</p>}
        {record && (isOver(state) || asked) && <Foot record={record} />}
      </article>
    </li>
  );
}
