import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { MessageRecord } from '../../contracts/api/messages.js';
import { isRepeatable, isTerminal } from '../../contracts/message-states.js';
import { call } from '../api/call.js';
import { forEach } from '../api/for-each.js';
import { CopyCurl } from '../parts/copy.js';
import { Dialog } from '../parts/dialog.js';

type Act = 'cancel' | 'retry';
const WORDS: Record<Act, { verb: string; explains: string }> = {
  cancel: {
    verb: 'Cancel',
    explains: 'Their agents are told to stop. What they have done already stays done.',
  },
  retry: {
    verb: 'Send again',
    explains: 'Each becomes a new message with the same content. Policies and quotas decide about it anew.',
  },
};

const many = (count: number) => (count === 1 ? '1 message' : `${count} messages`);

/** Cancels or sends again all that is selected, after one confirmation. */
export function BulkBar(props: {
  messages: MessageRecord[];
  mayRetry: (message: MessageRecord) => boolean;
  clear: () => void;
}) {
  const { messages, mayRetry, clear } = props;
  const client = useQueryClient();
  const [act, setAct] = useState<Act | null>(null);
  const [confirm, setConfirm] = useState(false);
  const [progress, setProgress] = useState<number | null>(null);
  const [refused, setRefused] = useState<ReadonlyMap<string, number>>(new Map());
  const running = messages.filter((message) => !isTerminal(message.state));
  const repeatable = messages.filter((message) => isRepeatable(message.state) && mayRetry(message));
  const begun = repeatable.filter(({ started_at }) => started_at !== undefined);
  const chosen = act === 'cancel' ? running : confirm ? repeatable : repeatable.filter((one) => !begun.includes(one));

  const send = async () => {
    if (act === null) return;
    setAct(null);
    setProgress(0);
    const path = act === 'cancel' ? '/messages/cancel' : '/messages/retry';
    const codes = await forEach(
      chosen,
      ({ message_id }) => call(path, { message_id, ...(act === 'retry' && confirm && { confirm }) }),
      () => setProgress((now) => (now ?? 0) + 1),
    );
    setProgress(null);
    setConfirm(false);
    setRefused(codes);
    void client.invalidateQueries({ queryKey: ['messages'] });
    void client.invalidateQueries({ queryKey: ['groups'] });
    if (codes.size === 0) clear();
  };

  return (
    <section className="bulk" aria-label="Selected messages">
      <strong>{progress === null ? `${messages.length} selected` : `${progress} of ${chosen.length} done`}</strong>
      {refused.size > 0 && (
        <span className="problem" role="alert">
          {[...refused].map(([code, count]) => `${count} refused: ${code}`).join(', ')}
        </span>
      )}
      {running.length > 0 && (
        <button type="button" disabled={progress !== null} onClick={() => setAct('cancel')}>
          Cancel {running.length}
        </button>
      )}
      {repeatable.length > 0 && (
        <button type="button" disabled={progress !== null} onClick={() => setAct('retry')}>
          Send {repeatable.length} again
        </button>
      )}
      <button type="button" onClick={clear}>
        Clear
      </button>
      {act && (
        <Dialog label={WORDS[act].verb} onClose={() => setAct(null)}>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              void send();
            }}
          >
            <h2>{act === 'cancel' ? `Cancel ${many(running.length)}?` : `Send ${many(repeatable.length)} again?`}</h2>
            <p>{WORDS[act].explains}</p>
            {act === 'retry' && begun.length > 0 && (
              <label className="tick">
                <input type="checkbox" checked={confirm} onChange={({ target }) => setConfirm(target.checked)} />
                Also the {begun.length} on which an agent may have acted already
              </label>
            )}
            <div className="buttons">
              <button type="submit" className={act === 'cancel' ? 'no' : 'yes'} disabled={chosen.length === 0}>
                {act === 'cancel' ? 'Cancel' : 'Send'} {many(chosen.length)}
                {act === 'retry' && ' again'}
              </button>
              <button type="button" onClick={() => setAct(null)}>
                Leave {messages.length === 1 ? 'it' : 'them'}
              </button>
              <CopyCurl
                path={act === 'cancel' ? '/messages/cancel' : '/messages/retry'}
                body={{ message_id: chosen[0]?.message_id ?? '' }}
              />
            </div>
          </form>
        </Dialog>
      )}
    </section>
  );
}
