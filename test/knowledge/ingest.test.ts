import { describe, expect, test } from 'vitest';
import { NewKnowledgeBaseResponse, Stats } from '../../contracts/api/knowledge/knowledge.js';
import { LIMITS } from '../../contracts/limits.js';
import { ok } from '../../contracts/primitives.js';
import { stopJob } from '../../knowledge/ingest/documents.js';
import { WORD_MODEL } from '../setup/embeddings.js';
import { until } from '../setup/until.js';
import { apiWithProvider, makeStale, TestBase } from './fixture.js';
import { docxOf, pdfOf, zipOf } from './parse/documents.js';

const { api, provider } = await apiWithProvider();
const { client, database } = api;
const create = (more?: object) => TestBase.create(client, more);
const base64 = (content: Buffer) => content.toString('base64');
/** Enough text to be a job of its own. */
const long = (word: string) =>
  Array.from({ length: 12_000 }, (_, at) => `The ${word} sentence has the number ${at}.`).join(' ');

describe('documents', () => {
  test('are found, with citations that point at them; what cannot be read fails alone', async () => {
    const base = await create();
    const otters = base64(pdfOf([['Nothing here.'], ['Otters hold hands.']]));
    const documents = [
      { source_id: 'markdown', filename: 'guide.md', content: '# Guide\n\n## Seals\n\nAll about seals.' },
      { source_id: 'pdf', content_base64: otters, filename: 'o.pdf' },
      { source_id: 'docx', content_base64: base64(docxOf(['# Crabs', 'Crabs walk sideways.'])) },
      { source_id: 'scan', content_base64: base64(pdfOf([null])) },
      { source_id: 'archive', content_base64: base64(zipOf({ a: 'b' })) },
    ];
    const answer = await base.ingest({ documents }, { wait: true });
    expect(answer.status).toBe('completed');
    const failed = answer.sources.filter(({ status }) => status === 'failed');
    expect(failed.map(({ source_id, error }) => [source_id, error?.code])).toEqual([
      ['scan', 'NO_TEXT'],
      ['archive', 'UNSUPPORTED_TYPE'],
    ]);
    expect(failed[0]?.error?.message).toMatch(/images/);
    const [pdf] = (await base.query('otters hold hands')).results;
    expect(pdf).toMatchObject({ source_id: 'pdf', citation: { filename: 'o.pdf', page_start: 1, page_end: 2 } });
    const [seals] = (await base.query('all about seals')).results;
    const citation = { heading_path: ['Guide', 'Seals'] };
    expect(seals).toMatchObject({ source_id: 'markdown', title: 'Guide', citation });
    const sources = await base.sources();
    expect(sources.map(({ source_id, content_type }) => [source_id, content_type]).sort()).toEqual([
      ['docx', expect.stringContaining('wordprocessing')],
      ['markdown', 'text/markdown'],
      ['pdf', 'application/pdf'],
    ]);
  });

  test('are cited by the stretch of their text, and by the page that it is on', async () => {
    const base = await create();
    const waves = 'Waves — 波 😀 — go up and down. '.repeat(40);
    const filler = 'Filler of the sea. '.repeat(60);
    const content = `\uFEFF# Sea\r\n\r\n${waves}\r\n\r\n## Seals\n\nSeals eat herring.\n\n${filler}`;
    // On each page more than a chunk before the sentence and behind it, so that what stands in the middle is on no other.
    const page = (n: number) =>
      Array.from({ length: 16 }, (_, line) => `Line ${line} of page ${n} ${'fills it with words '.repeat(5)}.`);
    const pages = [[...page(1), ...page(1)], [...page(2), 'Walruses rest on drifting floes.', ...page(2)], page(3)];
    const documents = [
      { source_id: 'markdown', filename: 'sea.md', content },
      { source_id: 'pdf', content_base64: base64(pdfOf(pages)) },
    ];
    await base.ingest({ documents }, { wait: true });
    const file = content.slice(1).replaceAll('\r\n', '\n');
    const ofMarkdown = { top_k: 50, filters: { source_ids: ['markdown'] } };
    const { results } = await base.query('seals waves filler', ofMarkdown);
    expect(results.length).toBeGreaterThan(2);
    for (const { text, citation } of results) expect(file.slice(citation.char_start, citation.char_end)).toBe(text);
    const [found] = (await base.query('walruses drifting floes', { top_k: 1, mode: 'lexical' })).results;
    expect(found?.text).toContain('Walruses rest on drifting floes.');
    expect(found?.citation).toMatchObject({ page_start: 2, page_end: 2 });
  });

  test('that are small are there at once, and large ones are a job that says how far it is', async () => {
    const base = await create();
    const small = await base.ingest({ content: 'Small words.' });
    expect(small).toMatchObject({ status: 'completed', async: false, chunks_created: 1 });
    expect(small.source_id).toMatch(/^src_/);
    const held = provider.hold('persimmon');
    const lines = Array.from({ length: 15_000 }, (_, at) => `The ${at === 13_000 ? 'persimmon' : 'apple'} is ${at}.`);
    const large = { title: 'Fruits', filename: 'a.md', content: `# Orchard\n\n## Trees\n\n${lines.join(' ')}` };
    const documents = [large, { source_id: 'other', content: 'Other words.' }];
    const { job_id, ...begun } = await base.ingest({ documents });
    expect(begun).toMatchObject({ status: 'processing', async: true });
    await held.held;
    const { progress, status } = await base.job(job_id);
    expect(status).toBe('processing');
    expect(progress).toMatchObject({ phase: 'working', sources_total: 2, sources_done: 0 });
    expect(progress.chunks_done).toBeGreaterThan(100);
    expect(progress.percent).toBeGreaterThan(20);
    expect(progress.percent).toBeLessThan(50);
    held.open();
    const job = await base.ended(job_id);
    expect(job).toMatchObject({
      status: 'completed',
      context: { namespace: base.namespace, operation: 'ingest' },
      progress: { phase: 'done', sources_total: 2, sources_done: 2, sources_failed: 0, percent: 100 },
      result: { created: 2, failed: 0 },
    });
    expect(job.progress.chunks_done).toBe(job.sources.reduce((sum, { chunk_count }) => sum + chunk_count, 0));
    expect(provider.texts.find((text) => text.includes('persimmon'))).toMatch(/^Fruits\nOrchard > Trees\n/);
    const [left] = await database.query('SELECT count(content) AS contents FROM knowledge_documents');
    expect(left).toEqual({ contents: 0 });
  });

  test('are told by the caller how long to wait', async () => {
    const base = await create();
    expect(await base.ingest({ content: 'No waiting.' }, { wait: false })).toMatchObject({ status: 'processing' });
    expect(await base.ingest({ content: long('waiting') }, { wait: true })).toMatchObject({ status: 'completed' });
  });

  const twice = [
    { source_id: 'a', content: 'a' },
    { source_id: 'a', content: 'b' },
  ];
  test.each<[string, object, string]>([
    ['nothing to take in', {}, '400 BAD_REQUEST'],
    ['two contents', { content: 'a', url: 'https://example.com' }, '400 BAD_REQUEST'],
    ['an address that may not be reached', { url: 'http://10.0.0.1/' }, '400 BAD_REQUEST'],
    ['what is no base64', { content_base64: 'äöü' }, '400 BAD_REQUEST'],
    ['the same source twice', { documents: twice }, '400 BAD_REQUEST'],
    ['more than ten megabytes', { content: 'x'.repeat(10 * 1024 * 1024 + 1) }, '413 PAYLOAD_TOO_LARGE'],
    ['a field that is not known', { text: 'a' }, '400 BAD_REQUEST'],
    ['millions of nothing', { documents: Array.from({ length: 2_000_000 }, () => ({})) }, '413 PAYLOAD_TOO_LARGE'],
  ])('are refused with %s', async (_, body, failure) => {
    const { namespace } = await create();
    expect(await client.failure('/knowledge_base/ingest', { namespace, ...body })).toBe(failure);
  });
});

describe('a source', () => {
  test('of the same content is unchanged and neither embedded nor read again; other tags are an update', async () => {
    const base = await create();
    const document = { source_id: 'same', content: 'Unchanging marmalade.', tags: ['a'] };
    const revisionAndVersion = () =>
      database.query(
        `SELECT b.revision, version FROM knowledge_bases b JOIN knowledge_sources USING (tenant_id, namespace) WHERE namespace = $1`,
        [base.namespace],
      );
    const result = async (more: object) => (await base.ingest({ ...document, ...more })).sources[0];
    expect(await result({})).toMatchObject({ result: 'created' });
    const before = await revisionAndVersion();
    const embedded = provider.texts.length;
    expect(await result({})).toMatchObject({ result: 'unchanged', status: 'completed', chunk_count: 1 });
    expect(await result({ tags: ['b'] })).toMatchObject({ result: 'updated', tags: ['b'] });
    expect(provider.texts).toHaveLength(embedded);
    expect(await revisionAndVersion()).toEqual(before);
    const filters = { tags_any: ['b'] };
    expect((await base.query('marmalade', { filters })).results).toMatchObject([{ tags: ['b'] }]);
    expect(await result({ content: 'Restless marmalade.' })).toMatchObject({ result: 'updated' });
    expect(await revisionAndVersion()).not.toEqual(before);
    expect(await base.texts('marmalade')).toEqual(['Restless marmalade.']);
    const [one, other] = [await base.ingest({ content: 'No id.' }), await base.ingest({ content: 'No id.' })];
    expect([one, other].map(({ sources }) => sources[0]?.result)).toEqual(['created', 'unchanged']);
    expect(one.source_id).toBe(other.source_id);
  });

  test('is replaced at one instant; a new version that fails keeps the old one', async () => {
    const base = await create();
    await base.ingest({ source_id: 'page', content: 'Old rhubarb text.' });
    const held = provider.hold('New rhubarb');
    const replaced = await base.ingest({ source_id: 'page', content: 'New rhubarb text.' }, { wait: false });
    await held.held;
    expect(await base.texts('rhubarb text')).toEqual(['Old rhubarb text.']);
    held.open();
    await base.ended(replaced.job_id);
    expect(await base.texts('rhubarb text')).toEqual(['New rhubarb text.']);
    const damaged = await base.ingest({ source_id: 'page', content: '{"rhubarb', content_type: 'application/json' });
    expect(damaged).toMatchObject({ status: 'failed', sources: [{ result: 'failed', error: { code: 'DAMAGED' } }] });
    expect(await base.texts('rhubarb text')).toEqual(['New rhubarb text.']);
  });

  test('that was deleted while it was taken in never appears', async () => {
    const base = await create();
    await base.ingest({ source_id: 'gone', content: 'Old turnip.' });
    const held = provider.hold('New turnip');
    const { job_id } = await base.ingest({ source_id: 'gone', content: 'New turnip.' }, { wait: false });
    await held.held;
    const gone = { namespace: base.namespace, source_id: 'gone' };
    await base.ok('delete_source', gone, ok({}));
    expect(await base.texts('turnip')).toEqual([]);
    held.open();
    expect(await base.ended(job_id)).toMatchObject({ status: 'failed', error: { code: 'SOURCE_DELETED' } });
    expect(await base.texts('turnip')).toEqual([]);
    expect(await client.failure('/knowledge_base/delete_source', gone)).toBe('404 NOT_FOUND');
  });

  test('keeps the version of the last call, whichever is written first', async () => {
    const base = await create();
    const held = provider.hold('First parsnip');
    const first = await base.ingest({ source_id: 'raced', content: 'First parsnip.' }, { wait: false });
    await held.held;
    const second = await base.ingest({ source_id: 'raced', content: 'Second parsnip.' });
    expect(second).toMatchObject({ status: 'completed' });
    held.open();
    expect(await base.ended(first.job_id)).toMatchObject({ status: 'failed', error: { code: 'SUPERSEDED' } });
    expect(await base.texts('parsnip')).toEqual(['Second parsnip.']);
  });

  test('loses no attempt while the provider of embeddings is away', async () => {
    const base = await create();
    provider.fail('');
    const { job_id } = await base.ingest({ source_id: 'patient', content: 'Patient chicory.' }, { wait: false });
    // One more than the attempt under way, which counts if the provider comes back between its failure and the look whether it is away.
    await database.query('UPDATE knowledge_documents SET attempts = 4 WHERE job_id = $1', [job_id]);
    const calls = () => provider.texts.filter((text) => text.includes('Patient chicory')).length;
    const callsOfSlice = 4;
    await until(() => calls() > 3 * callsOfSlice, { what: 'a slice after three that failed' });
    // The one under way, and no other.
    const attempts = 'SELECT attempts FROM knowledge_documents WHERE job_id = $1';
    expect(await database.value<number>(attempts, [job_id])).toBeLessThanOrEqual(5);
    provider.fail(null);
    expect(await base.ended(job_id)).toMatchObject({ status: 'completed' });
  });

  test('is tried again while the provider of embeddings fails, and fails with its name in the end', async () => {
    const base = await create();
    provider.fail('Unlucky celery');
    const documents = [
      { source_id: 'bad', content: 'Unlucky celery.' },
      { source_id: 'good', content: 'Lucky celery.' },
    ];
    const { job_id } = await base.ingest({ documents }, { wait: false });
    const job = await base.ended(job_id);
    expect(provider.texts.filter((text) => text.includes('Unlucky celery')).length).toBeGreaterThan(4);
    provider.fail(null);
    expect(job.sources.map(({ source_id, status, error }) => [source_id, status, error?.code])).toEqual([
      ['bad', 'failed', 'BAD_GATEWAY'],
      ['good', 'completed', undefined],
    ]);
  });
});

test('a text of 256 KiB does not stand behind the large jobs of its tenant', async () => {
  const base = await create();
  const held = provider.hold('Slow damson');
  const jobs = await Promise.all(
    Array.from({ length: 5 }, (_, at) => base.ingest({ content: `Slow damson ${at}.` }, { wait: false })),
  );
  await held.held;
  const quick = 'Quick damson jam. '.repeat(15_000).slice(0, LIMITS.knowledgeInlineBytes);
  expect(await base.ingest({ content: quick })).toMatchObject({ status: 'completed', async: false });
  held.open();
  for (const { job_id } of jobs) expect(await base.ended(job_id)).toMatchObject({ status: 'completed' });
});

test('a repeat under the same key is the same job; with other documents it is refused', async () => {
  const base = await create();
  const key = { idempotency_key: 'once' };
  const one = await base.ingest({ content: 'Only once.' }, key);
  expect((await base.ingest({ content: 'Only once.' }, key)).job_id).toBe(one.job_id);
  const other = { namespace: base.namespace, content: 'Other.', ...key };
  expect(await client.failure('/knowledge_base/ingest', other)).toBe('409 IDEMPOTENCY_MISMATCH');
});

test('a base is created once under a key, with its documents, and a repeat that asks for another one is refused', async () => {
  const body = { namespace: 'keyed', description: 'd', documents: [{ content: 'Keyed.' }], idempotency_key: 'once' };
  const create = async () => NewKnowledgeBaseResponse.parse((await client.post('/knowledge_base/new', body)).body);
  const [one, other] = await Promise.all([create(), create()]);
  expect(one).toMatchObject({ job_id: expect.stringMatching(/^job_/), knowledge_base: { description: 'd' } });
  expect(other).toMatchObject({ job_id: one.job_id, knowledge_base: one.knowledge_base });
  expect(await create()).toMatchObject({ job_id: one.job_id, status: 'completed' });
  for (const changed of [{ description: 'e' }, { documents: [{ content: 'Other.' }] }, { documents: undefined }])
    expect(await client.failure('/knowledge_base/new', { ...body, ...changed })).toBe('409 IDEMPOTENCY_MISMATCH');
  for (const idempotency_key of ['other', undefined])
    expect(await client.failure('/knowledge_base/new', { ...body, idempotency_key })).toBe('409 CONFLICT');
  const bare = { namespace: 'bare', idempotency_key: 'once' };
  for (let time = 0; time < 2; time += 1) expect((await client.post('/knowledge_base/new', bare)).status).toBe(200);
});

test('a base that is deleted in the middle of an ingest leaves nothing, and one of its name begins empty', async () => {
  const base = await create();
  await base.ingest({ source_id: 'kept', content: 'Vanishing leek.' });
  const held = provider.hold('Late leek');
  const { job_id } = await base.ingest({ source_id: 'late', content: 'Late leek.' }, { wait: false });
  await held.held;
  await base.ok('delete', {}, ok({}));
  const named = { namespace: base.namespace };
  for (const operation of ['get_by_id', 'get_sources', 'get_stats', 'delete'])
    expect(await client.failure(`/knowledge_base/${operation}`, named)).toBe('404 NOT_FOUND');
  expect(await client.failure('/knowledge_base/get_status', { job_id })).toBe('404 NOT_FOUND');
  expect(await client.failure('/knowledge_base/query', { ...named, query: 'leek' })).toBe('404 NOT_FOUND');
  expect((await client.post('/knowledge_base/new', named)).status).toBe(200);
  held.open();
  await api.knowledge.untilJobsRest();
  expect(await base.texts('leek')).toEqual([]);
  for (const table of ['sources', 'chunks', 'documents', 'jobs']) {
    const rows = await database.query(`SELECT 1 FROM knowledge_${table} WHERE namespace = $1`, [base.namespace]);
    expect([table, rows.length]).toEqual([table, 0]);
  }
});

describe('a refresh', () => {
  test('embeds chunks that no present model has embedded, which stats count', async () => {
    const base = await create();
    const documents = ['One swede.', 'Two swedes.'].map((content, at) => ({ source_id: `s${at}`, content }));
    await base.ingest({ documents });
    const stats = async () => (await base.ok('get_stats', {}, Stats)).stats;
    const counted = { sources: 2, chunks: 2, bytes: 21, embedding_model: WORD_MODEL, stale_chunks: 0 };
    expect(await stats()).toMatchObject(counted);
    await makeStale(database, base, 's0');
    expect(await stats()).toMatchObject({ ...counted, stale_chunks: 1 });
    const job = await base.ended(await base.refresh());
    expect(job).toMatchObject({ status: 'completed', result: { updated: 1, unchanged: 1 } });
    expect(await stats()).toMatchObject(counted);
  });

  test('is asked for by other chunk settings, and cuts what is there anew', async () => {
    const base = await create();
    const shown = { tags: ['t'], title: 'Cabbages', source_type: 'book' };
    await base.ingest({ source_id: 'long', content: long('kohlrabi').slice(0, 20_000), ...shown });
    const [before] = await base.sources();
    const change = { namespace: base.namespace, config: { chunk_tokens: 64 }, description: 'd' };
    expect((await client.post('/knowledge_base/update', change)).body).toMatchObject({
      refresh_required: true,
      knowledge_base: { description: 'd', config: { chunk_tokens: 64, top_k: 5 } },
    });
    await base.ended(await base.refresh());
    const [after] = await base.sources();
    expect(after?.chunk_count).toBeGreaterThan(2 * (before?.chunk_count ?? 0));
    expect(after).toMatchObject({ ...shown, content_hash: before?.content_hash });
  });

  test('leaves every query with all sources meanwhile, and mode_used says how they were found', async () => {
    const base = await create();
    const names = ['alpha', 'beta', 'gamma'];
    await base.ingest({ documents: names.map((name) => ({ source_id: name, content: `The ${name} fennel.` })) });
    await makeStale(database, base);
    const answer = async (more: object = {}) => {
      const { results, mode_used } = await base.query('fennel', more);
      const ids = (of: typeof results) => of.map(({ source_id }) => source_id).sort();
      return { mode_used, found: ids(results), byMeaning: ids(results.filter(({ scores }) => 'semantic' in scores)) };
    };
    expect(await answer()).toEqual({ mode_used: 'lexical', found: names, byMeaning: [] });
    await base.ended(await base.refresh({ source_ids: ['alpha'] }));
    const partly = { mode_used: 'hybrid', found: names, byMeaning: ['alpha'] };
    expect(await answer()).toEqual(partly);
    const held = provider.hold('beta fennel');
    const job_id = await base.refresh();
    await held.held;
    expect(await answer()).toEqual(partly);
    const ofStale = { filters: { source_ids: ['beta'] } };
    expect(await answer(ofStale)).toEqual({ mode_used: 'lexical', found: ['beta'], byMeaning: [] });
    held.open();
    const meanwhile: object[] = [];
    while ((await base.job(job_id)).status !== 'completed') meanwhile.push(await answer());
    // Each source is replaced at one instant: no answer lacks one.
    for (const one of meanwhile) expect(one).toMatchObject({ mode_used: 'hybrid', found: names });
    expect(await answer()).toEqual({ mode_used: 'hybrid', found: names, byMeaning: names });
    expect(await answer(ofStale)).toMatchObject({ mode_used: 'hybrid' });
  });

  test('that is given up leaves stale chunks to be found as before', async () => {
    const base = await create();
    await base.ingest({ documents: [{ source_id: 'kept', content: 'A kept lovage.' }] });
    await makeStale(database, base);
    const held = provider.hold('kept lovage');
    const job_id = await base.refresh();
    await held.held;
    await stopJob(api.db, { tenant_id: api.tenantId, job_id });
    expect(await base.ended(job_id)).toMatchObject({ status: 'failed', error: { code: 'CANCELED' } });
    held.open();
    await api.knowledge.untilJobsRest();
    expect(await base.query('lovage')).toMatchObject({ mode_used: 'lexical', results: [{ source_id: 'kept' }] });
  });
});
