import { Link } from '@tanstack/react-router';
import { memo } from 'react';
import type { MessageRecord } from '../../contracts/api/messages.js';
import { instanceName } from '../fleet/instance-name.js';
import { Badge } from '../parts/states.js';
import { Ago } from '../parts/time.js';
import { REASONS, STATE_WORDS, targetText, titleOf, tookText } from './words.js';

/** What is to be said of a message beside its state: why it failed, what it waits for, how long it took. */
function Standing({ message }: { message: MessageRecord }) {
  const { error, waits_for: waits, duration_ms, state, instance_id } = message;
  if (error) return <code className="problem">{error.code}</code>;
  if (waits) {
    const { kind, since, target } = waits;
    return (
      <>
        {[REASONS[kind], target && targetText(waits)].filter(Boolean).join(' · ')} · <Ago at={since} short />
      </>
    );
  }
  if (state === 'completed' && duration_ms !== undefined) return <>{tookText(duration_ms)}</>;
  return <>{state === 'working' && instance_id ? instanceName(instance_id) : ''}</>;
}

/** One message in the list. While one scrolls, only rows that are new are drawn. */
export const MessageRow = memo(function MessageRow(props: {
  message: MessageRecord;
  isCurrent: boolean;
  isChecked: boolean;
  mayCheck: boolean;
  check: (messageId: string) => void;
}) {
  const { message, isCurrent, isChecked, mayCheck, check } = props;
  const { message_id, state, agent_type, created_at, user_id } = message;
  const title = titleOf(message);
  return (
    <div className={`row message-row${isCurrent ? ' current' : ''}`}>
      <label className="check">
        <input type="checkbox" checked={isChecked} disabled={!mayCheck} onChange={() => check(message_id)} />
        <span className="hidden">Select “{title.slice(0, 80)}”</span>
      </label>
      <Link from="/messages" to="/messages" search={(search) => ({ ...search, message: message_id })} replace>
        <span className="state">
          <Badge state={state} label={STATE_WORDS[state]} />
        </span>
        <span className="title cut">{title}</span>
        <span className="standing cut quiet">
          <Standing message={message} />
        </span>
        <span className="agent cut quiet">
          {agent_type ?? 'no agent'}
          {user_id !== undefined && ` · ${user_id}`}
        </span>
        <span className="when quiet">
          <Ago at={created_at} short />
        </span>
      </Link>
    </div>
  );
});
