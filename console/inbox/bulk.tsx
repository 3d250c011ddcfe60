import { useState } from 'react';
import type { RequestRecord } from '../../contracts/api/policies/requests.js';
import { Dialog } from '../parts/dialog.js';
import { useKeys } from '../parts/keys.js';
import { decisions } from './decisions.js';

/** The same answer for many requests, after one confirmation. */
export function BulkBar({ requests, done }: { requests: RequestRecord[]; done: () => void }) {
  const [resolution, setResolution] = useState<'approved' | 'rejected' | null>(null);
  const [comment, setComment] = useState('');
  useKeys({ 'shift+a': () => setResolution('approved'), 'shift+r': () => setResolution('rejected') });
  const send = () => {
    if (resolution === null) return;
    void decisions.decideMany(requests, resolution, comment.trim());
    done();
  };
  const verb = resolution === 'approved' ? 'Approve' : 'Reject';
  const what = requests.length === 1 ? '1 request' : `${requests.length} requests`;
  const tools = [...new Set(requests.map(({ input_request: { tool, kind } }) => tool ?? kind))];
  return (
    <div className="bulk">
      <strong>{requests.length} selected</strong>
      <button type="button" className="yes" onClick={() => setResolution('approved')}>
        Approve <kbd>⇧A</kbd>
      </button>
      <button type="button" className="no" onClick={() => setResolution('rejected')}>
        Reject <kbd>⇧R</kbd>
      </button>
      <button type="button" onClick={done}>
        Clear
      </button>
      {resolution && (
        <Dialog label={`${verb} ${what}`} onClose={() => setResolution(null)}>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              send();
            }}
          >
            <h2>
              {verb} {what}?
            </h2>
            <p>
              {tools.slice(0, 5).join(', ')}
              {tools.length > 5 && ' and others'}. This cannot be undone.
            </p>
            <div className="field">
              <label htmlFor="bulk-comment">Comment for all</label>
              <textarea
                id="bulk-comment"
                rows={2}
                maxLength={4096}
                value={comment}
                onChange={({ target }) => setComment(target.value)}
              />
            </div>
            <div className="buttons">
              {/* biome-ignore lint/a11y/noAutofocus: Return is to confirm */}
              <button type="submit" autoFocus className={resolution === 'approved' ? 'yes' : 'no'}>
                {verb} {what}
              </button>
              <button type="button" onClick={() => setResolution(null)}>
                Cancel
              </button>
            </div>
          </form>
        </Dialog>
      )}
    </div>
  );
}
