import { Dialog } from '../parts/dialog.js';
import { VIEWS } from './views.js';

const KEYS: [keys: string, does: string][] = [
  ['J / K', 'next, previous request or message'],
  ['A', 'approve, confirm or submit'],
  ['R', 'reject or decline'],
  ['E', 'edit the arguments'],
  ['C', 'comment'],
  ['U', 'undo, within five seconds'],
  ['X', 'select; ⇧A and ⇧R decide all that is selected'],
  ['O', 'open the message'],
  ['/', 'find words, or a name'],
  ['G D', 'decided requests'],
  ...VIEWS.flatMap(({ views }) => views).map(({ key, label }): [string, string] => [`G ${key.toUpperCase()}`, label]),
  ['⌘K, Ctrl+K', 'go to anything'],
  ['?', 'this list'],
];

/** The map of the keyboard. */
export function Help({ close }: { close: () => void }) {
  return (
    <Dialog label="Keyboard" onClose={close}>
      <h2>Keyboard</h2>
      <dl className="keymap">
        {KEYS.map(([keys, does]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <div className="buttons">
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
