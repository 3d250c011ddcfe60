import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { OfferedTool } from '../../contracts/api/tools.js';
import { ApiError, call } from '../api/call.js';
import { CopyCurl } from '../parts/copy.js';
import { Dialog } from '../parts/dialog.js';
import { linesOf, listOf } from '../policies/form.js';
import { Labelled, Typed } from '../policies/typed.js';

/** Asks which agent types may offer a tool, says what follows, and sets it. */
function OwnerDialog({ tool, close }: { tool: OfferedTool; close: () => void }) {
  const client = useQueryClient();
  const [types, setTypes] = useState(tool.owners ?? tool.offered_by);
  const body = { tool: tool.name, agent_types: types.length > 0 ? types : null };
  const set = useMutation({
    mutationFn: () => call('/tools/set_owner', body),
    onSuccess: async () => {
      void client.invalidateQueries({ queryKey: ['history', tool.name] });
      await client.invalidateQueries({ queryKey: ['tools'] });
      close();
    },
  });
  const without = tool.offered_by.filter((type) => types.length > 0 && !types.includes(type));
  return (
    <Dialog label="Who may offer this tool?" onClose={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          set.mutate();
        }}
      >
        <h2>Who may offer {tool.name}?</h2>
        <p>Calls reach only agents of these types. Agents of other types go on without the tool.</p>
        <Labelled label="Agent types" about="One a line. None: any type may offer it.">
          {(shared) => (
            <Typed
              {...shared}
              className="mono"
              rows={3}
              value={types}
              show={linesOf}
              read={(text) => listOf(text) ?? []}
              change={setTypes}
            />
          )}
        </Labelled>
        {without.length > 0 && (
          <p className="notice wait">Calls no longer reach {without.join(', ')}, from the moment that you set this.</p>
        )}
        {set.error && (
          <p className="notice bad" role="alert">
            {set.error.message} {set.error instanceof ApiError && <code>{set.error.code}</code>}
          </p>
        )}
        <div className="buttons">
          <button type="submit" className="primary" disabled={set.isPending}>
            {types.length > 0 ? 'Only these types' : 'Any type'}
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
          <CopyCurl path="/tools/set_owner" body={body} />
        </div>
      </form>
    </Dialog>
  );
}

/** Opens the question who may offer a tool. */
export function SetOwner({ tool }: { tool: OfferedTool }) {
  const [asks, setAsks] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setAsks(true)}>
        Set who may offer it
      </button>
      {asks && <OwnerDialog tool={tool} close={() => setAsks(false)} />}
    </>
  );
}
