import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { call } from '../api/call.js';
import { CopyCurl } from '../parts/copy.js';
import { Dialog } from '../parts/dialog.js';
import { Problem } from '../parts/states.js';
import { documentOf, type SourceForm } from './words.js';

const KINDS: [SourceForm['kind'], string][] = [
  ['text', 'Text'],
  ['url', 'URL'],
  ['file', 'File'],
];
const EMPTY: SourceForm = { kind: 'text', text: '', url: '', file: null, title: '', tags: '' };

function base64Of(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(reader.error);
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ''));
    reader.readAsDataURL(file);
  });
}

function Content({ form, set }: { form: SourceForm; set: (more: Partial<SourceForm>) => void }) {
  if (form.kind === 'text')
    return (
      <div className="field">
        <label htmlFor="source-text">Text or Markdown</label>
        <textarea
          id="source-text"
          rows={8}
          required
          value={form.text}
          onChange={({ target }) => set({ text: target.value })}
        />
      </div>
    );
  if (form.kind === 'url')
    return (
      <div className="field">
        <label htmlFor="source-url">Address</label>
        <input
          id="source-url"
          type="url"
          required
          placeholder="https://example.com/guide.html"
          value={form.url}
          onChange={({ target }) => set({ url: target.value })}
        />
        <small className="quiet">The platform reads it. Addresses that are not public are refused.</small>
      </div>
    );
  return (
    <div className="field">
      <label htmlFor="source-file">File</label>
      <input
        id="source-file"
        type="file"
        required
        accept=".txt,.md,.html,.csv,.json,.pdf,.docx"
        onChange={async ({ target }) => {
          const file = target.files?.[0];
          set({ file: file ? { name: file.name, base64: await base64Of(file) } : null });
        }}
      />
      <small className="quiet">Text, Markdown, HTML, CSV, JSON, PDF or DOCX, 10 MiB at most.</small>
    </div>
  );
}

/** Asks for a document, which is then taken in. @param props.added called with the job */
export function AddSource(props: { namespace: string; close: () => void; added: (jobId: string) => void }) {
  const { namespace, close, added } = props;
  const client = useQueryClient();
  const [form, setForm] = useState(EMPTY);
  const set = (more: Partial<SourceForm>) => setForm((old) => ({ ...old, ...more }));
  const document = documentOf(form);
  const body = { namespace, ...document };
  const add = useMutation({
    mutationFn: () => call('/knowledge_base/ingest', body),
    onSuccess: ({ job_id }) => {
      void client.invalidateQueries({ queryKey: ['base', namespace] });
      added(job_id);
    },
  });
  return (
    <Dialog label="Add a source" onClose={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (document) add.mutate();
        }}
      >
        <h2>Add a source to {namespace}</h2>
        <fieldset className="tabs">
          <legend className="hidden">Kind</legend>
          {KINDS.map(([kind, label]) => (
            <button key={kind} type="button" aria-pressed={form.kind === kind} onClick={() => set({ kind })}>
              {label}
            </button>
          ))}
        </fieldset>
        <Content key={form.kind} form={form} set={set} />
        <div className="field">
          <label htmlFor="source-title">Title</label>
          <input
            id="source-title"
            maxLength={512}
            placeholder="Optional: by default what the document says"
            value={form.title}
            onChange={({ target }) => set({ title: target.value })}
          />
        </div>
        <div className="field">
          <label htmlFor="source-tags">Tags</label>
          <input
            id="source-tags"
            placeholder="Optional, with commas between"
            value={form.tags}
            onChange={({ target }) => set({ tags: target.value })}
          />
        </div>
        <Problem error={add.error} />
        <div className="buttons">
          <button type="submit" className="yes" disabled={add.isPending}>
            {add.isPending ? 'Reading it …' : 'Add'}
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
          {form.kind !== 'file' && <CopyCurl path="/knowledge_base/ingest" body={body} />}
        </div>
      </form>
    </Dialog>
  );
}
