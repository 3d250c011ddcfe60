import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { type BodyOf, call } from '../api/call.js';
import { CopyCurl } from '../parts/copy.js';
import { Dialog } from '../parts/dialog.js';
import { Problem } from '../parts/states.js';

/** Asks what a new knowledge base is called. @param props.made called with its namespace */
export function NewBase({ close, made }: { close: () => void; made: (namespace: string) => void }) {
  const client = useQueryClient();
  const [namespace, setNamespace] = useState('');
  const [description, setDescription] = useState('');
  const [visibility, setVisibility] = useState<'tenant' | 'private'>('tenant');
  const body: BodyOf<'/knowledge_base/new'> = {
    namespace,
    ...(description.trim() !== '' && { description: description.trim() }),
    visibility,
  };
  const create = useMutation({
    mutationFn: () => call('/knowledge_base/new', body),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ['bases'] });
      made(namespace);
    },
  });
  return (
    <Dialog label="New knowledge base" onClose={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate();
        }}
      >
        <h2>New knowledge base</h2>
        <div className="field">
          <label htmlFor="base-name">Name</label>
          <input
            id="base-name"
            required
            autoFocus
            pattern="[a-z0-9][a-z0-9._\-]{0,62}"
            title="Lower-case letters, digits, dots, underscores and hyphens"
            placeholder="handbook"
            value={namespace}
            onChange={({ target }) => setNamespace(target.value)}
          />
          <small className="quiet">
            Agents and callers name it so. Lower-case letters, digits, dots, underscores and hyphens.
          </small>
        </div>
        <div className="field">
          <label htmlFor="base-about">Description</label>
          <textarea
            id="base-about"
            rows={2}
            maxLength={4096}
            placeholder="Optional"
            value={description}
            onChange={({ target }) => setDescription(target.value)}
          />
        </div>
        <div className="field">
          <label htmlFor="base-seen">Who reads it</label>
          <select
            id="base-seen"
            value={visibility}
            onChange={({ target }) => setVisibility(target.value === 'private' ? 'private' : 'tenant')}
          >
            <option value="tenant">Everybody of the tenant, agents too</option>
            <option value="private">You, and whoever has the scope full</option>
          </select>
        </div>
        <Problem error={create.error} />
        <div className="buttons">
          <button type="submit" className="yes" disabled={create.isPending}>
            Create
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
          <CopyCurl path="/knowledge_base/new" body={body} />
        </div>
      </form>
    </Dialog>
  );
}
