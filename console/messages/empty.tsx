import { Link } from '@tanstack/react-router';
import { Icon } from '../parts/icon.js';
import { activeFields, LONGER_DEFAULT, type MessagesSearch } from './filters.js';

/** What to do where a list is empty. */
export function Empty({ search }: { search: MessagesSearch }) {
  if (search.view === 'stuck')
    return (
      <div className="empty">
        <Icon name="check" />
        <h2>Nothing is stuck</h2>
        <p className="quiet">
          No message{search.waits ? ' of this kind' : ''} has waited for longer than{' '}
          {(search.longer ?? LONGER_DEFAULT).replace(/(\d+)/, '$1 ')}. Choose a shorter time, or{' '}
          <Link to="/messages" search={{ state: 'working' }}>
            see what agents work on
          </Link>
          .
        </p>
      </div>
    );
  const isFiltered = search.text !== undefined || activeFields(search).length > 0;
  return (
    <div className="empty">
      <Icon name={isFiltered ? 'filter' : 'messages'} />
      <h2>{isFiltered ? 'Nothing matches' : 'No message was sent yet'}</h2>
      {isFiltered ? (
        <Link to="/messages" search={{}}>
          Take the filters away
        </Link>
      ) : (
        <>
          <p className="quiet">Send one from a shell. It appears here at once.</p>
          <pre className="code">fleet send "What is 6 * 7?"</pre>
        </>
      )}
    </div>
  );
}
