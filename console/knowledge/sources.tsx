import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { KnowledgeSource } from '../../contracts/api/knowledge/knowledge.js';
import { call } from '../api/call.js';
import { More } from '../list/more.js';
import { ConfirmDialog } from '../parts/confirm.js';
import { CopyCurl } from '../parts/copy.js';
import { Failed, Loading, Problem } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Ago } from '../parts/time.js';
import { sourcesQuery } from './queries.js';
import { sizeText } from './words.js';

/** Reads a source again, or deletes it. */
function Actions({ namespace, source }: { namespace: string; source: KnowledgeSource }) {
  const { source_id, title, url, chunk_count } = source;
  const client = useQueryClient();
  const [asks, setAsks] = useState(false);
  const onSettled = () => client.invalidateQueries({ queryKey: ['base', namespace] });
  const refresh = useMutation({
    mutationFn: () => call('/knowledge_base/refresh', { namespace, source_ids: [source_id], force: true }),
    onSettled,
  });
  const remove = useMutation({
    mutationFn: () => call('/knowledge_base/delete_source', { namespace, source_id }),
    onSettled,
  });
  return (
    <span className="source-actions">
      <button type="button" className="link" disabled={refresh.isPending} onClick={() => refresh.mutate()}>
        {url === undefined ? 'Embed again' : 'Read again'}
      </button>
      <button type="button" className="link" disabled={remove.isPending} onClick={() => setAsks(true)}>
        Delete
      </button>
      <CopyCurl path="/knowledge_base/delete_source" body={{ namespace, source_id }} />
      {refresh.isSuccess && (
        <span className="quiet" role="status">
          A job reads it.
        </span>
      )}
      <Problem error={refresh.error ?? remove.error} />
      {asks && (
        <ConfirmDialog
          question={`Delete the source “${title.slice(0, 80)}”?`}
          label="Delete it"
          danger
          onConfirm={() => remove.mutate()}
          close={() => setAsks(false)}
        >
          <p>
            Its {numberText(chunk_count)} {chunk_count === 1 ? 'chunk is' : 'chunks are'} gone at once, and no query
            finds them any more.
          </p>
        </ConfirmDialog>
      )}
    </span>
  );
}

/** The sources of a base, the newest first. */
export function Sources({ namespace, mayChange }: { namespace: string; mayChange: boolean }) {
  const list = useInfiniteQuery(sourcesQuery(namespace));
  const sources = list.data?.pages.flatMap((page) => page.sources) ?? [];
  if (list.error && !list.data) return <Failed error={list.error} retry={() => void list.refetch()} />;
  if (!list.data) return <Loading rows={3} />;
  if (sources.length === 0)
    return (
      <div className="empty">
        <h2>No sources yet</h2>
        <p className="quiet">
          {mayChange ? 'Add a text, a page or a file. ' : 'Adding one needs the scope full. '}
          Documents that could not be read are among the jobs.
        </p>
      </div>
    );
  return (
    <div>
      <table className="table sources">
        <thead>
          <tr>
            <th scope="col">Source</th>
            <th scope="col">Chunks</th>
            <th scope="col">Size</th>
            <th scope="col">Changed</th>
          </tr>
        </thead>
        <tbody>
          {sources.map((source) => (
            <tr key={source.source_id}>
              <th scope="row">
                <span className="line">
                  <strong>{source.title}</strong>
                  {source.stale && <span className="badge wait">stale</span>}
                  {source.tags.map((tag) => (
                    <span key={tag} className="badge">
                      {tag}
                    </span>
                  ))}
                </span>
                <span className="quiet small origin">
                  {source.url && /^https?:/i.test(source.url) ? (
                    <a href={source.url} target="_blank" rel="noopener noreferrer">
                      {source.url}
                    </a>
                  ) : (
                    (source.filename ?? source.source_id)
                  )}
                </span>
                {mayChange && <Actions namespace={namespace} source={source} />}
              </th>
              <td data-name="Chunks">{numberText(source.chunk_count)}</td>
              <td data-name="Size">{sizeText(source.bytes)}</td>
              <td data-name="Changed">
                <Ago at={source.updated_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <More {...list} />
    </div>
  );
}
