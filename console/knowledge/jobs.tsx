import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { IngestedSource, KnowledgeJob } from '../../contracts/api/knowledge/knowledge.js';
import { CopyCurl, Id } from '../parts/copy.js';
import { Badge, Failed, Loading } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { Ago } from '../parts/time.js';
import { jobQuery, jobsQuery } from './queries.js';

const OPERATIONS: Record<string, string> = { create: 'Created with', ingest: 'Added', refresh: 'Read again' };

/** What came of the documents of a job so far. */
function countsText({ progress, result }: KnowledgeJob): string {
  const { sources_total, sources_done, sources_failed, chunks_done } = progress;
  if (!result) return `${sources_done} of ${sources_total} done, ${numberText(chunks_done)} chunks`;
  const counts = { new: result.created, changed: result.updated, unchanged: result.unchanged, failed: sources_failed };
  const said = Object.entries(counts).filter(([, count]) => count > 0);
  return said.map(([name, count]) => `${numberText(count)} ${name}`).join(', ') || 'nothing to do';
}

function Document({ document }: { document: IngestedSource }) {
  const { source_id, status, chunk_count, result, error } = document;
  return (
    <li>
      <span className="line">
        <span className="cut">{source_id}</span>
        <Badge state={status} label={result ?? status} />
        <span className="quiet small">
          {numberText(chunk_count)} {chunk_count === 1 ? 'chunk' : 'chunks'}
        </span>
      </span>
      {error && (
        <span className="problem small">
          {error.code} {error.message}
        </span>
      )}
    </li>
  );
}

/** The documents of a job, those that failed among them. */
function Documents({ job }: { job: KnowledgeJob }) {
  const { job_id, status, progress } = job;
  const { data, error, refetch } = useQuery(jobQuery(job_id, status !== 'processing'));
  if (error && !data) return <Failed error={error} retry={() => void refetch()} />;
  if (!data) return <Loading rows={1} />;
  const left = progress.sources_total - data.sources.length;
  return (
    <div className="job-detail">
      <ul>
        {data.sources.map((document) => (
          <Document key={document.source_id} document={document} />
        ))}
      </ul>
      {left > 0 && <p className="quiet">{numberText(left)} others are left out.</p>}
      <p className="line quiet small">
        <Id id={job_id} />
        <CopyCurl path="/knowledge_base/get_status" body={{ job_id }} />
      </p>
    </div>
  );
}

/** The newest jobs of a base, with how far they are and what failed. One of them may be open. */
export function Jobs({ namespace, job: current }: { namespace: string; job: string | undefined }) {
  const { data: jobs, error, refetch } = useQuery(jobsQuery(namespace));
  if (error && !jobs) return <Failed error={error} retry={() => void refetch()} />;
  if (!jobs) return <Loading rows={3} />;
  if (jobs.length === 0)
    return (
      <div className="empty">
        <h2>No jobs</h2>
        <p className="quiet">Each addition is a job, which is listed for seven days after its end.</p>
      </div>
    );
  return (
    <ul className="jobs">
      {jobs.map((job) => {
        const { job_id, status, context, progress, created_at } = job;
        const isOpen = job_id === current;
        const count = progress.sources_total;
        return (
          <li key={job_id}>
            <Link
              from="/knowledge"
              to="/knowledge"
              search={({ job: _, ...old }) => ({ ...old, ...(!isOpen && { job: job_id }) })}
              replace
              aria-expanded={isOpen}
            >
              <span className="line">
                <strong className="cut">
                  {OPERATIONS[context.operation] ?? context.operation}{' '}
                  {context.source_id ?? `${numberText(count)} ${count === 1 ? 'document' : 'documents'}`}
                </strong>
                <Badge state={status} label={status === 'processing' ? `${progress.percent} %` : status} />
              </span>
              <span className="line quiet small">
                <span className="cut">{countsText(job)}</span>
                <Ago at={created_at} />
              </span>
              {status === 'processing' && <meter aria-label="Progress" max={100} value={progress.percent} />}
              {job.error && (
                <span className="problem small">
                  {job.error.code} {job.error.message}
                </span>
              )}
            </Link>
            {isOpen && <Documents job={job} />}
          </li>
        );
      })}
    </ul>
  );
}
