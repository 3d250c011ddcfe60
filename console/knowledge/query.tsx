import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { SearchResult } from '../../contracts/api/knowledge/knowledge-query.js';
import { FilterChoice } from '../list/choice.js';
import { CopyCurl } from '../parts/copy.js';
import { Failed, Loading } from '../parts/states.js';
import { numberText } from '../parts/texts.js';
import { searchBody, searchQuery } from './queries.js';
import { type KnowledgeSearch, MODES } from './search.js';
import { placeText } from './words.js';

const MODE_WORDS = { hybrid: 'by meaning and words', semantic: 'by meaning', lexical: 'by words' };

function Result({ result }: { result: SearchResult }) {
  const { text, title, score, citation, source_id, tags } = result;
  const { url, filename } = citation;
  return (
    <li>
      <div className="line">
        <strong className="cut">{title}</strong>
        {tags.map((tag) => (
          <span key={tag} className="badge">
            {tag}
          </span>
        ))}
        <span className="score" title="How well it fits, from 0 to 1">
          {score.toFixed(2)}
          <meter aria-label="Score" max={1} value={score} />
        </span>
      </div>
      <p className="prose">{text}</p>
      <p className="quiet small origin">
        {url && /^https?:/i.test(url) ? (
          <a href={url} target="_blank" rel="noopener noreferrer">
            {url}
          </a>
        ) : (
          (filename ?? source_id)
        )}
        , {placeText(result)}
      </p>
    </li>
  );
}

/** A query to try, and what it finds with its citations. The query is in the address. */
export function Query({ namespace, search }: { namespace: string; search: KnowledgeSearch }) {
  const navigate = useNavigate({ from: '/knowledge' });
  const [typed, setTyped] = useState(search.q ?? '');
  const { data, error, refetch, isFetching } = useQuery(searchQuery(namespace, search));
  const set = (more: Partial<KnowledgeSearch>) =>
    void navigate({ search: (old) => ({ ...old, ...more }), replace: true });
  return (
    <section className="try">
      <form
        className="line"
        onSubmit={(event) => {
          event.preventDefault();
          set({ q: typed.trim() || undefined });
          if (typed.trim() === search.q) void refetch();
        }}
      >
        <input
          type="search"
          aria-label="Query"
          placeholder="Which class may I take on a long journey?"
          maxLength={256}
          value={typed}
          onChange={({ target }) => setTyped(target.value)}
        />
        <FilterChoice
          label="How"
          any="As the base says"
          value={search.mode}
          values={MODES}
          text={(mode) => MODE_WORDS[mode]}
          change={(mode) => set({ mode })}
        />
        <button type="submit">Search</button>
      </form>
      {search.q === undefined && <p className="quiet">Ask as an agent would. Each result says where it stands.</p>}
      {search.q !== undefined && !data && isFetching && <Loading rows={3} />}
      {error && <Failed error={error} retry={() => void refetch()} />}
      {data && !error && (
        <>
          <p className="quiet small line" role="status">
            {data.results.length} of {numberText(data.total_candidates)} that fit, found {MODE_WORDS[data.mode_used]}
            <CopyCurl path="/knowledge_base/query" body={searchBody(namespace, search)} />
          </p>
          {data.results.length === 0 && (
            <div className="empty">
              <h2>Nothing fits</h2>
              <p className="quiet">
                Say it in other words, or search by words. Results below the least score are left out.
              </p>
            </div>
          )}
          <ol className="results">
            {data.results.map((result) => (
              <Result key={result.chunk_id} result={result} />
            ))}
          </ol>
        </>
      )}
    </section>
  );
}
