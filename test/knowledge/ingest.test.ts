import { describe, expect, test } from 'vitest';
import { IngestResponse, NewKnowledgeBaseResponse, Sources, Stats } from '../../contracts/api/knowledge/knowledge.js';
import { ok } from '../../contracts/primitives.js';
import { ingestWorkflowId } from '../../workflows/definitions.js';
import { until } from '../setup/until.js';
import { makeStale, platformWithProvider, TestBase } from './fixture.js';
import { docxOf, pdfOf, zipOf } from './parse/documents.js';

const fixture = platformWithProvider();
const client = () => fixture.shared.platform.client;
const create = (more?: object) => TestBase.create(client(), more);
const base64 = (content: Buffer) => content.toString('base64');
/** Enough text to be a job of its own. */
const long = (word: string) =>
  Array.from({ length: 12_000 }, (_, at) => `The ${word} sentence has the number ${at}.`).join(' ');

describe('documents', () => {
  test('of every format are found, with citations that point at them; what cannot be read fails alone', async () => {
    const base = await create();
    const documents = [
      { source_id: 'text', content: 'Plain text about walruses.' },
      { source_id: 'markdown', filename: 'guide.md', content: '# Guide\n\n## Seals\n\nAll about seals.' },
      { source_id: 'html', content: '<html><title>Birds</title><h1>Penguins</h1><p>Penguins swim well.</p></html>' },
      { source_id: 'csv', filename: 'fish.csv', content: 'name,length\nherring,30\nsalmon,120\n' },
      { source_id: 'json', content: '{"whales": {"blue": "largest of whales"}}' },
      {
        source_id: 'pdf',
        content_base64: base64(pdfOf([['Nothing here.'], ['Otters hold hands.']])),
        filename: 'o.pdf',
      },
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
    expect(seals).toMatchObject({
      source_id: 'markdown',
      title: 'Guide',
      citation: { heading_path: ['Guide', 'Seals'] },
    });
    expect(await base.texts('herring length')).toContainEqual(expect.stringContaining('name: herring; length: 30'));
    const { sources } = await base.ok('get_sources', {}, Sources);
    expect(sources.map(({ source_id, content_type }) => [source_id, content_type]).sort()).toEqual([
      ['csv', 'text/csv'],
      ['docx', expect.stringContaining('wordprocessing')],
      ['html', 'text/html'],
      ['json', 'application/json'],
      ['markdown', 'text/markdown'],
      ['pdf', 'application/pdf'],
      ['text', 'text/plain'],
    ]);
    expect(sources.find(({ source_id }) => source_id === 'html')?.title).toBe('Birds');
  });

  test('are cited by the stretch of their text, and by the page that it is on', async () => {
    const base = await create();
    const content = `\uFEFF# Sea\r\n\r\n${'Waves — 波 😀 — go up and down. '.repeat(40)}\r\n\r\n## Seals\n\nSeals eat herring.\n\n${'Filler of the sea. '.repeat(60)}`;
    // On each page more than a chunk before the sentence and behind it, so that what stands in the middle is on no other.
    const page = (n: number) =>
      Array.from({ length: 16 }, (_, line) => `Line ${line} of page ${n} ${'fills it with words '.repeat(5)}.`);
    const pages = [1, 2, 3].map((n) => [
      ...page(n),
      ...(n === 2 ? ['Walruses rest on drifting floes.'] : []),
      ...page(n),
    ]);
    await base.ingest(
      {
        documents: [
          { source_id: 'markdown', filename: 'sea.md', content },
          { source_id: 'pdf', content_base64: base64(pdfOf(pages)) },
        ],
      },
      { wait: true },
    );
    const file = content.slice(1).replaceAll('\r\n', '\n');
    const ofMarkdown = (await base.query('seals waves filler', { top_k: 50, filters: { source_ids: ['markdown'] } }))
      .results;
    expect(ofMarkdown.length).toBeGreaterThan(2);
    for (const { text, citation } of ofMarkdown) {
      expect(file.slice(citation.char_start, citation.char_end)).toBe(text);
    }
    const [found] = (await base.query('walruses drifting floes', { top_k: 1, mode: 'lexical' })).results;
    expect(found?.text).toContain('Walruses rest on drifting floes.');
    expect(found?.citation).toMatchObject({ page_start: 2, page_end: 2 });
  });

  test('that are small are there at once; large ones are a job whose content is in no history', async () => {
    const base = await create();
    const small = await base.ingest({ content: 'Small words.' });
    expect(small).toMatchObject({
      status: 'completed',
      async: false,
      chunks_created: 1,
      source_id: expect.stringMatching(/^src_/),
    });
    const large = await base.ingest({ source_id: 'large', content: long('xylophone'), title: 'Large' });
    expect(large).toMatchObject({ status: 'processing', async: true });
    const job = await base.ended(large.job_id);
    expect(job).toMatchObject({
      status: 'completed',
      context: { namespace: base.namespace, operation: 'ingest', source_id: 'large' },
      progress: { phase: 'done', sources_total: 1, sources_done: 1, sources_failed: 0, percent: 100 },
      result: { created: 1, failed: 0 },
    });
    expect(job.progress.chunks_done).toBe(job.sources[0]?.chunk_count);
    const ref = { tenant_id: fixture.shared.platform.devJson().tenant_id, job_id: large.job_id };
    const handle = fixture.shared.temporal.workflow.getHandle(ingestWorkflowId(ref));
    await until(async () => (await handle.describe()).status.name === 'COMPLETED', { what: 'the end of the workflow' });
    expect(JSON.stringify(await handle.fetchHistory())).not.toMatch(/xylophone|eHlsb3Bob25l/);
    const [left] = await fixture.shared.database.query('SELECT count(content) AS contents FROM knowledge_documents');
    expect(left).toEqual({ contents: 0 });
  });

  test('are told by the caller how long to wait', async () => {
    const base = await create();
    expect(await base.ingest({ content: 'No waiting.' }, { wait: false })).toMatchObject({ status: 'processing' });
    expect(await base.ingest({ content: long('waiting') }, { wait: true })).toMatchObject({ status: 'completed' });
  });

  test('come with a new base', async () => {
    const namespace = `born-${Date.now()}`;
    const answer = await client().post('/knowledge_base/new', {
      namespace,
      documents: [{ content: 'Born with words.' }],
    });
    expect(answer.body).toMatchObject({ ok: true, job_id: expect.stringMatching(/^job_/), status: 'completed' });
    expect(await client().failure('/knowledge_base/new', { namespace })).toBe('409 CONFLICT');
  });

  test.each<[string, object, string]>([
    ['nothing to take in', {}, '400 BAD_REQUEST'],
    ['two contents', { content: 'a', url: 'https://example.com' }, '400 BAD_REQUEST'],
    ['an address that may not be reached', { url: 'http://10.0.0.1/' }, '400 BAD_REQUEST'],
    ['what is no base64', { content_base64: 'äöü' }, '400 BAD_REQUEST'],
    [
      'the same source twice',
      {
        documents: [
          { source_id: 'a', content: 'a' },
          { source_id: 'a', content: 'b' },
        ],
      },
      '400 BAD_REQUEST',
    ],
    ['more than ten megabytes', { content: 'x'.repeat(10 * 1024 * 1024 + 1) }, '413 PAYLOAD_TOO_LARGE'],
    ['a field that is not known', { text: 'a' }, '400 BAD_REQUEST'],
    ['millions of nothing', { documents: Array.from({ length: 2_000_000 }, () => ({})) }, '413 PAYLOAD_TOO_LARGE'],
  ])('are refused with %s', async (_, body, failure) => {
    const { namespace } = await create();
    expect(await client().failure('/knowledge_base/ingest', { namespace, ...body })).toBe(failure);
  });
});

describe('a source', () => {
  test('of the same content is unchanged, without a second embedding; other tags are an update', async () => {
    const base = await create();
    const document = { source_id: 'same', content: 'Unchanging marmalade.', tags: ['a'] };
    expect((await base.ingest(document)).sources[0]?.result).toBe('created');
    const embedded = fixture.provider.texts.length;
    expect((await base.ingest(document)).sources[0]).toMatchObject({
      result: 'unchanged',
      status: 'completed',
      chunk_count: 1,
    });
    expect((await base.ingest({ ...document, tags: ['b'] })).sources[0]).toMatchObject({
      result: 'updated',
      tags: ['b'],
    });
    expect(fixture.provider.texts).toHaveLength(embedded);
    const [found] = (await base.query('marmalade')).results;
    expect(found?.tags).toEqual(['b']);
    const twice = [await base.ingest({ content: 'Without an id.' }), await base.ingest({ content: 'Without an id.' })];
    expect(twice.map(({ sources }) => sources[0]?.result)).toEqual(['created', 'unchanged']);
    expect(twice[0]?.source_id).toBe(twice[1]?.source_id);
  });

  test('that is sent again unchanged answers as before, and is not read into memory again', async () => {
    const base = await create();
    const document = { source_id: 'again', content: 'Steady quince.' };
    const revisionAndVersion = () =>
      fixture.shared.database.query(
        `SELECT b.revision, version FROM knowledge_bases b JOIN knowledge_sources USING (tenant_id, namespace) WHERE namespace = $1`,
        [base.namespace],
      );
    await base.ingest(document);
    expect(await base.texts('quince')).toEqual(['Steady quince.']);
    const before = await revisionAndVersion();
    expect((await base.ingest(document)).sources[0]?.result).toBe('unchanged');
    expect((await base.ingest({ ...document, tags: ['new'] })).sources[0]?.result).toBe('updated');
    expect(await revisionAndVersion()).toEqual(before);
    expect(await base.query('quince', { filters: { tags_any: ['new'] } })).toMatchObject({
      results: [{ text: 'Steady quince.', tags: ['new'] }],
    });
    await base.ingest({ ...document, content: 'Restless quince.' });
    expect(await revisionAndVersion()).not.toEqual(before);
    expect(await base.texts('quince')).toEqual(['Restless quince.']);
  });

  test('is replaced at one instant; a new version that fails keeps the old one', async () => {
    const base = await create();
    await base.ingest({ source_id: 'page', content: 'Old rhubarb text.' });
    const held = fixture.provider.hold('New rhubarb');
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
    const held = fixture.provider.hold('New turnip');
    const { job_id } = await base.ingest({ source_id: 'gone', content: 'New turnip.' }, { wait: false });
    await held.held;
    await base.ok('delete_source', { source_id: 'gone' }, ok({}));
    expect(await base.texts('turnip')).toEqual([]);
    held.open();
    expect(await base.ended(job_id)).toMatchObject({ status: 'failed', error: { code: 'SOURCE_DELETED' } });
    expect(await base.texts('turnip')).toEqual([]);
    expect(
      await client().failure('/knowledge_base/delete_source', { namespace: base.namespace, source_id: 'gone' }),
    ).toBe('404 NOT_FOUND');
  });

  test('keeps the version of the last call, whichever is written first', async () => {
    const base = await create();
    const held = fixture.provider.hold('First parsnip');
    const first = await base.ingest({ source_id: 'raced', content: 'First parsnip.' }, { wait: false });
    await held.held;
    expect(await base.ingest({ source_id: 'raced', content: 'Second parsnip.' })).toMatchObject({
      status: 'completed',
    });
    held.open();
    expect(await base.ended(first.job_id)).toMatchObject({ status: 'failed', error: { code: 'SUPERSEDED' } });
    expect(await base.texts('parsnip')).toEqual(['Second parsnip.']);
  });

  test('loses no attempt while the provider of embeddings is away', async () => {
    const base = await create();
    fixture.provider.fail('');
    const { job_id } = await base.ingest({ source_id: 'patient', content: 'Patient chicory.' }, { wait: false });
    // One more than the attempt under way, which counts if the provider comes back between its failure and the look whether it is away.
    await fixture.shared.database.query('UPDATE knowledge_documents SET attempts = 4 WHERE job_id = $1', [job_id]);
    const calls = () => fixture.provider.texts.filter((text) => text.includes('Patient chicory')).length;
    const callsOfSlice = 4;
    await until(() => calls() > 3 * callsOfSlice, { timeoutMs: 60_000, what: 'a slice after three that failed' });
    // The one under way, and no other.
    const [document] = await fixture.shared.database.query<{ attempts: number }>(
      'SELECT attempts FROM knowledge_documents WHERE job_id = $1',
      [job_id],
    );
    expect(document?.attempts).toBeLessThanOrEqual(5);
    fixture.provider.fail(null);
    expect(await base.ended(job_id, 60_000)).toMatchObject({ status: 'completed' });
  }, 150_000);

  test('is tried again while the provider of embeddings fails, and fails with its name in the end', async () => {
    const base = await create();
    fixture.provider.fail('Unlucky celery');
    const { job_id } = await base.ingest(
      {
        documents: [
          { source_id: 'bad', content: 'Unlucky celery.' },
          { source_id: 'good', content: 'Lucky celery.' },
        ],
      },
      { wait: false },
    );
    // The last of six attempts would come after half a minute.
    await fixture.shared.database.query(
      `UPDATE knowledge_documents SET attempts = attempts + 2 WHERE job_id = $1 AND source_id = 'bad'`,
      [job_id],
    );
    const job = await base.ended(job_id, 120_000);
    expect(fixture.provider.texts.filter((text) => text.includes('Unlucky celery')).length).toBeGreaterThan(4);
    fixture.provider.fail(null);
    expect(job.sources.map(({ source_id, status, error }) => [source_id, status, error?.code])).toEqual([
      ['bad', 'failed', 'BAD_GATEWAY'],
      ['good', 'completed', undefined],
    ]);
  }, 150_000);
});

test('a repeat under the same key is the same job; with other documents it is refused', async () => {
  const base = await create();
  const key = { idempotency_key: 'once' };
  const one = await base.ingest({ content: 'Only once.' }, key);
  expect((await base.ingest({ content: 'Only once.' }, key)).job_id).toBe(one.job_id);
  const other = { namespace: base.namespace, content: 'Other.', ...key };
  expect(await client().failure('/knowledge_base/ingest', other)).toBe('409 IDEMPOTENCY_MISMATCH');
});

test('a base is created once under a key, with one job, and a repeat that asks for another one is refused', async () => {
  const namespace = `keyed-${Date.now()}`;
  const body = { namespace, description: 'd', documents: [{ content: 'Keyed salsify.' }], idempotency_key: 'once' };
  const create = async () => NewKnowledgeBaseResponse.parse((await client().post('/knowledge_base/new', body)).body);
  const [one, other] = await Promise.all([create(), create()]);
  expect(one).toMatchObject({ status: expect.any(String), knowledge_base: { namespace, description: 'd' } });
  expect(other).toMatchObject({ job_id: one.job_id, knowledge_base: one.knowledge_base });
  expect(await create()).toMatchObject({ job_id: one.job_id, status: 'completed' });
  for (const changed of [{ description: 'e' }, { documents: [{ content: 'Other.' }] }, { documents: undefined }])
    expect(await client().failure('/knowledge_base/new', { ...body, ...changed })).toBe('409 IDEMPOTENCY_MISMATCH');
  expect(await client().failure('/knowledge_base/new', { ...body, idempotency_key: 'other' })).toBe('409 CONFLICT');
  const bare = { namespace: `bare-${Date.now()}`, idempotency_key: 'once' };
  expect((await client().post('/knowledge_base/new', bare)).status).toBe(200);
  expect((await client().post('/knowledge_base/new', bare)).status).toBe(200);
});

test('a base that is deleted in the middle of an ingest leaves nothing, and one of its name begins empty', async () => {
  const base = await create();
  await base.ingest({ source_id: 'kept', content: 'Vanishing leek.' });
  const held = fixture.provider.hold('Late leek');
  const { job_id } = await base.ingest({ source_id: 'late', content: 'Late leek.' }, { wait: false });
  await held.held;
  await base.ok('delete', {}, ok({}));
  const { namespace } = base;
  const failures = ['get_by_id', 'get_sources', 'get_stats', 'delete'].map((operation) =>
    client().failure(`/knowledge_base/${operation}`, { namespace }),
  );
  expect(new Set(await Promise.all(failures))).toEqual(new Set(['404 NOT_FOUND']));
  expect(await client().failure('/knowledge_base/get_status', { job_id })).toBe('404 NOT_FOUND');
  expect(await client().failure('/knowledge_base/query', { namespace, query: 'leek' })).toBe('404 NOT_FOUND');
  expect((await client().post('/knowledge_base/new', { namespace })).status).toBe(200);
  held.open();
  const handle = fixture.shared.temporal.workflow.getHandle(
    ingestWorkflowId({ tenant_id: fixture.shared.platform.devJson().tenant_id, job_id }),
  );
  await until(async () => (await handle.describe()).status.name === 'COMPLETED', {
    what: 'the end of the late workflow',
  });
  expect(await base.texts('leek')).toEqual([]);
  for (const table of ['sources', 'chunks', 'documents', 'jobs']) {
    const rows = await fixture.shared.database.query(`SELECT 1 FROM knowledge_${table} WHERE namespace = $1`, [
      namespace,
    ]);
    expect([table, rows.length]).toEqual([table, 0]);
  }
});

test('stats count what a base holds, and chunks that no present model has embedded', async () => {
  const base = await create();
  await base.ingest({
    documents: [
      { source_id: 'a', content: 'One swede.' },
      { source_id: 'b', content: 'Two swedes.' },
    ],
  });
  const { stats } = await base.ok('get_stats', {}, Stats);
  expect(stats).toMatchObject({ sources: 2, chunks: 2, bytes: 21, embedding_model: 'words-1', stale_chunks: 0 });
  await makeStale(fixture.shared.database, base, 'a');
  expect((await base.ok('get_stats', {}, Stats)).stats.stale_chunks).toBe(1);
  const { job_id } = await base.ok('refresh', {}, IngestResponse.pick({ job_id: true }));
  expect(await base.ended(job_id)).toMatchObject({ status: 'completed', result: { updated: 1, unchanged: 1 } });
  expect((await base.ok('get_stats', {}, Stats)).stats.stale_chunks).toBe(0);
});

test('other chunk settings ask for a refresh, which cuts what is there anew', async () => {
  const base = await create();
  await base.ingest({
    source_id: 'long',
    content: long('kohlrabi').slice(0, 20_000),
    tags: ['t'],
    title: 'Cabbages',
    source_type: 'book',
  });
  const before = (await base.ok('get_sources', {}, Sources)).sources[0];
  const changed = await client().post('/knowledge_base/update', {
    namespace: base.namespace,
    config: { chunk_tokens: 64 },
    description: 'd',
  });
  expect(changed.body).toMatchObject({
    refresh_required: true,
    knowledge_base: { description: 'd', config: { chunk_tokens: 64, top_k: 5 } },
  });
  const { job_id } = await base.ok('refresh', {}, IngestResponse.pick({ job_id: true }));
  await base.ended(job_id);
  const after = (await base.ok('get_sources', {}, Sources)).sources[0];
  expect(after?.chunk_count).toBeGreaterThan(2 * (before?.chunk_count ?? 0));
  expect(after).toMatchObject({
    title: 'Cabbages',
    tags: ['t'],
    source_type: 'book',
    content_hash: before?.content_hash,
  });
});

test('while stale chunks are embedded anew every query finds them, and mode_used says how', async () => {
  const base = await create();
  const names = ['alpha', 'beta', 'gamma'];
  await base.ingest({ documents: names.map((name) => ({ source_id: name, content: `The ${name} fennel.` })) });
  await makeStale(fixture.shared.database, base);
  const answer = async (more: object = {}) => {
    const { results, mode_used } = await base.query('fennel', more);
    const ids = (of: typeof results) => of.map(({ source_id }) => source_id).sort();
    return { mode_used, found: ids(results), byMeaning: ids(results.filter(({ scores }) => 'semantic' in scores)) };
  };
  const refresh = async (more: object = {}) =>
    (await base.ok('refresh', more, IngestResponse.pick({ job_id: true }))).job_id;
  expect(await answer()).toEqual({ mode_used: 'lexical', found: names, byMeaning: [] });
  await base.ended(await refresh({ source_ids: ['alpha'] }));
  const partly = { mode_used: 'hybrid', found: names, byMeaning: ['alpha'] };
  expect(await answer()).toEqual(partly);
  const held = fixture.provider.hold('beta fennel');
  const job_id = await refresh();
  await held.held;
  expect(await answer()).toEqual(partly);
  const ofStale = { filters: { source_ids: ['beta'] } };
  expect(await answer(ofStale)).toEqual({ mode_used: 'lexical', found: ['beta'], byMeaning: [] });
  held.open();
  const meanwhile: Awaited<ReturnType<typeof answer>>[] = [];
  await until(async () => {
    meanwhile.push(await answer());
    return (await base.job(job_id)).status === 'completed';
  });
  // Each source is replaced at one instant: no answer lacks one.
  expect(meanwhile.map(({ found, mode_used }) => [mode_used, ...found])).toEqual(
    meanwhile.map(() => ['hybrid', ...names]),
  );
  expect(await answer()).toEqual({ mode_used: 'hybrid', found: names, byMeaning: names });
  expect(await answer(ofStale)).toMatchObject({ mode_used: 'hybrid' });
});

test('stale chunks that cannot be embedded anew are found as before', async () => {
  const base = await create();
  await base.ingest({ documents: [{ source_id: 'kept', content: 'A kept lovage.' }] });
  await makeStale(fixture.shared.database, base);
  const held = fixture.provider.hold('kept lovage');
  const { job_id } = await base.ok('refresh', {}, IngestResponse.pick({ job_id: true }));
  await held.held;
  await fixture.shared.temporal.workflow
    .getHandle(ingestWorkflowId({ tenant_id: fixture.shared.platform.devJson().tenant_id, job_id }))
    .cancel();
  expect(await base.ended(job_id)).toMatchObject({ status: 'failed', error: { code: 'CANCELED' } });
  held.open();
  expect(await base.query('lovage')).toMatchObject({ mode_used: 'lexical', results: [{ source_id: 'kept' }] });
});
