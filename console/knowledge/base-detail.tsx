import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import type { KnowledgeStats } from '../../contracts/api/knowledge/knowledge.js';
import { call } from '../api/call.js';
import { ConfirmDialog } from '../parts/confirm.js';
import { CopyCurl } from '../parts/copy.js';
import { Fact } from '../parts/fact.js';
import { Failed, Loading, Problem } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Ago } from '../parts/time.js';
import { AddSource } from './add-source.js';
import { Jobs } from './jobs.js';
import { baseQuery, jobsQuery, statsQuery } from './queries.js';
import { Query } from './query.js';
import type { KnowledgeSearch } from './search.js';
import { Sources } from './sources.js';
import { sizeText } from './words.js';

const TABS: { tab: KnowledgeSearch['tab']; label: string }[] = [
  { tab: undefined, label: 'Sources' },
  { tab: 'jobs', label: 'Jobs' },
  { tab: 'query', label: 'Try a query' },
];

/** Adds to a base, reads its sources again, deletes it. */
function Actions({ namespace, stats }: { namespace: string; stats: KnowledgeStats | undefined }) {
  const navigate = useNavigate({ from: '/knowledge' });
  const client = useQueryClient();
  const [asks, setAsks] = useState<'add' | 'delete' | null>(null);
  const showJob = (job: string) => void navigate({ search: (old) => ({ ...old, tab: 'jobs', job }), replace: true });
  const refresh = useMutation({
    mutationFn: () => call('/knowledge_base/refresh', { namespace }),
    onSuccess: ({ job_id }) => {
      void client.invalidateQueries({ queryKey: ['base', namespace] });
      showJob(job_id);
    },
  });
  const remove = useMutation({
    mutationFn: () => call('/knowledge_base/delete', { namespace }),
    onSuccess: async () => {
      // The list first, so that it does not offer the base again.
      await client.invalidateQueries({ queryKey: ['bases'] });
      void navigate({ search: {}, replace: true });
    },
  });
  return (
    <div className="actions">
      <button type="button" onClick={() => setAsks('add')}>
        Add a source
      </button>
      <button type="button" disabled={refresh.isPending} onClick={() => refresh.mutate()}>
        Read all again
      </button>
      <button type="button" disabled={remove.isPending} onClick={() => setAsks('delete')}>
        Delete
      </button>
      <CopyCurl path="/knowledge_base/refresh" body={{ namespace }} />
      <Problem error={refresh.error ?? remove.error} />
      {asks === 'add' && (
        <AddSource
          namespace={namespace}
          close={() => setAsks(null)}
          added={(job) => {
            setAsks(null);
            showJob(job);
          }}
        />
      )}
      {asks === 'delete' && (
        <ConfirmDialog
          question={`Delete the knowledge base ${namespace}?`}
          label="Delete it"
          danger
          onConfirm={() => remove.mutate()}
          close={() => setAsks(null)}
        >
          <p>
            {stats && `It has ${numberText(stats.sources)} ${stats.sources === 1 ? 'source' : 'sources'}. `}
            Everything in it and its jobs are gone at once, and agents that ask it get an error. This cannot be taken
            back.
          </p>
        </ConfirmDialog>
      )}
    </div>
  );
}

function Tiles({ stats }: { stats: KnowledgeStats }) {
  const { sources, chunks, bytes, embedding_model, stale_chunks, last_ingested_at } = stats;
  return (
    <dl className="facts tiles">
      <Fact name="Sources">
        {numberText(sources)} <span className="quiet">{sizeText(bytes)}</span>
      </Fact>
      <Fact name="Chunks">
        {numberText(chunks)} {stale_chunks > 0 && <span className="quiet">{numberText(stale_chunks)} stale</span>}
      </Fact>
      <Fact name="Search">
        {embedding_model === null ? 'By words' : 'By meaning'}{' '}
        <span className="quiet cut">{embedding_model ?? 'no embedding model'}</span>
      </Fact>
      <Fact name="Last changed">{last_ingested_at ? <Ago at={last_ingested_at} /> : 'never'}</Fact>
    </dl>
  );
}

/** Sources and counts are read again when a job comes or ends. @returns how many jobs are at work */
function useJobs(namespace: string): number {
  const client = useQueryClient();
  const { data: jobs = [] } = useQuery(jobsQuery(namespace));
  const standing = jobs.map(({ job_id, progress }) => `${job_id} ${progress.sources_done}`).join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: read again for each other standing
  useEffect(() => {
    for (const part of ['stats', 'sources']) void client.invalidateQueries({ queryKey: ['base', namespace, part] });
  }, [standing, client, namespace]);
  return jobs.filter(({ status }) => status === 'processing').length;
}

/** One knowledge base: what it holds, its sources, its jobs, and a query to try. */
export function BaseDetail(props: { namespace: string; search: KnowledgeSearch; mayChange: boolean }) {
  const { namespace, search, mayChange } = props;
  const { data: base, error, refetch } = useQuery(baseQuery(namespace));
  const { data: stats } = useQuery(statsQuery(namespace));
  const busy = useJobs(namespace);
  if (error && !base) return <Failed error={error} retry={() => void refetch()} />;
  if (!base) return <Loading />;
  return (
    <article className="detail">
      <header>
        <div className="line title">
          <h2>{base.display_name}</h2>
          {base.visibility === 'private' && <span className="badge">private</span>}
        </div>
        {base.description && <p className="prose quiet">{base.description}</p>}
        {mayChange && <Actions namespace={namespace} stats={stats} />}
      </header>
      {stats && <Tiles stats={stats} />}
      <nav className="views" aria-label="What of it">
        {TABS.map(({ tab, label }) => (
          <Link
            key={label}
            from="/knowledge"
            to="/knowledge"
            search={({ job: _, ...old }) => ({ ...old, tab })}
            replace
            aria-current={search.tab === tab ? 'page' : undefined}
            activeOptions={{ exact: true }}
          >
            {label}
            {tab === 'jobs' && busy > 0 && <span className="badge busy">{busy} at work</span>}
          </Link>
        ))}
      </nav>
      {search.tab === undefined && <Sources namespace={namespace} mayChange={mayChange} />}
      {search.tab === 'jobs' && <Jobs namespace={namespace} job={search.job} />}
      {search.tab === 'query' && <Query namespace={namespace} search={search} />}
      <footer className="quiet">
        <CopyCurl path="/knowledge_base/get_sources" body={{ namespace }} />
      </footer>
    </article>
  );
}
