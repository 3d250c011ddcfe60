import { Link } from '@tanstack/react-router';
import type { RequestRecord } from '../../contracts/api/policies/requests.js';
import { Badge, Outcome } from '../parts/states.js';
import { Ago, Countdown } from '../parts/time.js';
import type { Decision } from './decisions.js';
import { argumentsText, isYes } from './words.js';

/** Who is behind a request, in a few words. */
export function senderOf({ sent_by, user_id }: RequestRecord): string {
  return user_id ?? sent_by.name ?? `${sent_by.type} …${sent_by.id.slice(-6)}`;
}

const STATES: Record<Decision['state'], string> = {
  waiting: 'undo with U',
  sending: 'sending',
  sent: 'sent',
  refused: 'not decided',
};

/** What stands at the right of a row: what was decided, or how long there is left. */
function Standing({ request, decision }: { request: RequestRecord; decision: Decision | undefined }) {
  const { decided, outcome, state } = request;
  if (decision?.state === 'refused') return <Badge state="failed" label={STATES.refused} />;
  const resolution = decided?.resolution ?? decision?.answer.resolution;
  if (resolution === undefined)
    return state === 'open' ? <Countdown at={request.input_request.expires_at} /> : <Badge state={state} />;
  return (
    <>
      <Badge state={isYes(resolution) ? 'completed' : 'failed'} label={resolution} />
      {decision && !decided && <span className="quiet">{STATES[decision.state]}</span>}
      {outcome && <Outcome outcome={outcome} />}
    </>
  );
}

/** One request in the list. */
export function RequestRow(props: {
  request: RequestRecord;
  decision: Decision | undefined;
  isCurrent: boolean;
  isChecked: boolean;
  check: (() => void) | undefined;
}) {
  const { request, decision, isCurrent, isChecked, check } = props;
  const { request_id, agent_type, input_request: asked } = request;
  const about = asked.arguments ? argumentsText(asked.arguments) : (asked.tool ?? request.about.trim());
  const who = `${agent_type ?? 'a plan'} for ${senderOf(request)}`;
  const isOver = decision !== undefined || request.state !== 'open';
  return (
    <div className={`row${isCurrent ? ' current' : ''}${isOver ? ' over' : ''}`}>
      <label className="check">
        <input type="checkbox" checked={isChecked} disabled={!check} onChange={check} />
        <span className="hidden">Select “{asked.title}”</span>
      </label>
      <Link to="/inbox" search={(search) => ({ ...search, request: request_id })} replace>
        <span className="line">
          <strong>{asked.title}</strong>
          <span className="quiet small">
            <Ago at={asked.requested_at} short />
          </span>
        </span>
        <span className="line quiet">
          <span className="cut">{about || who}</span>
        </span>
        <span className="line small quiet">
          <Standing request={request} decision={decision} />
          {about && <span className="cut">· {who}</span>}
        </span>
      </Link>
    </div>
  );
}
