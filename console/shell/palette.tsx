import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { call } from '../api/call.js';
import { hasScope, sessionQuery } from '../api/session.js';
import { Dialog } from '../parts/dialog.js';
import { chooseTheme } from './theme.js';
import { VIEWS } from './views.js';

/** Something that the palette does. */
interface Command {
  label: string;
  hint?: string;
  run: () => void;
}

/** ⌘K: goes to a message or request by its id, to a view, or changes how the page looks. */
export function Palette({ close, signOut }: { close: () => void; signOut: (everywhere: boolean) => void }) {
  const navigate = useNavigate();
  const { data: session } = useQuery(sessionQuery);
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const wanted = text.trim();

  const waiting = useQuery({
    queryKey: ['requests', 'palette'],
    queryFn: async () => (await call('/requests/get', { page_size: 100 })).requests,
  });
  const toRequest = (request: string) => void navigate({ to: '/inbox', search: { box: 'all', request } });
  const toMessage = (messageId: string) =>
    void navigate({ to: '/messages/$messageId', params: { messageId }, search: {} });
  const ids: Command[] = [
    ...(/^msg_\S+$/.test(wanted) ? [{ label: `Open the message ${wanted}`, run: () => toMessage(wanted) }] : []),
    ...(/^req_\S+$/.test(wanted) ? [{ label: `Open the request ${wanted}`, run: () => toRequest(wanted) }] : []),
  ];
  const views: Command[] = [
    ...VIEWS.flatMap(({ views: shown }) => shown)
      .filter(({ scope }) => session != null && hasScope(session, scope))
      .map(({ to, label, key }) => ({
        label,
        hint: `G ${key.toUpperCase()}`,
        run: () => void navigate({ to, search: {} }),
      })),
    { label: 'Inbox: all open', run: () => void navigate({ to: '/inbox', search: { box: 'open' } }) },
    { label: 'Inbox: decided', hint: 'G D', run: () => void navigate({ to: '/inbox', search: { box: 'decided' } }) },
    {
      label: 'Messages: failed',
      run: () => void navigate({ to: '/messages', search: { state: 'failed', time: '24h' } }),
    },
    { label: 'Messages: stuck', run: () => void navigate({ to: '/messages', search: { view: 'stuck' } }) },
    { label: 'Theme: light', run: () => chooseTheme('light') },
    { label: 'Theme: dark', run: () => chooseTheme('dark') },
    { label: 'Theme: as the system', run: () => chooseTheme('system') },
    { label: 'API reference', run: () => window.open('/docs', '_blank', 'noopener') },
    { label: 'Sign out', run: () => signOut(false) },
    { label: 'Sign out everywhere', run: () => signOut(true) },
  ];
  const requests: Command[] = (waiting.data ?? []).map(({ request_id, input_request, agent_type }) => ({
    label: input_request.title,
    hint: agent_type ?? input_request.kind,
    run: () => toRequest(request_id),
  }));
  const fits = ({ label, hint = '' }: Command) => `${label} ${hint}`.toLowerCase().includes(wanted.toLowerCase());
  const found = [...ids, ...views.filter(fits), ...(wanted === '' ? [] : requests.filter(fits).slice(0, 8))];
  const chosen = Math.min(at, found.length - 1);
  const run = (command: Command | undefined) => {
    if (!command) return;
    close();
    command.run();
  };

  return (
    <Dialog label="Go to" className="palette" onClose={close}>
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found.length > 0 ? `palette-${chosen}` : undefined}
        aria-label="Go to"
        placeholder="A view, a request, or the id of a message"
        autoFocus
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (step !== undefined) {
            event.preventDefault();
            setAt((chosen + step + found.length) % Math.max(1, found.length));
          }
          if (event.key === 'Enter') run(found[chosen]);
        }}
      />
      <div role="listbox" id="palette-list" aria-label="Commands">
        {found.map((command, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/useFocusableInteractive: the input has the focus and the keys
          <div
            role="option"
            aria-selected={index === chosen}
            id={`palette-${index}`}
            key={`${command.label} ${command.hint}`}
            onClick={() => run(command)}
          >
            <span className="cut">{command.label}</span>
            {command.hint && <span className="quiet">{command.hint}</span>}
          </div>
        ))}
      </div>
      {found.length === 0 && <p className="quiet">Nothing fits. Paste the id of a message or a request.</p>}
    </Dialog>
  );
}
