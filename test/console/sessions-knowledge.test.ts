import { expect, test } from 'vitest';
import { parseKnowledgeSearch } from '../../console/knowledge/search.js';
import { documentOf, placeText, type SourceForm, sizeText } from '../../console/knowledge/words.js';
import { parseSessionsSearch, sessionsQueryOf } from '../../console/sessions/search.js';
import { SessionsGetRequest } from '../../contracts/api/sessions.js';

const NOW = Date.parse('2026-11-28T12:00:30.500Z');

test.each([
  [{}, {}],
  [{ status: 'paused', session: 'ses_1' }, { status: 'paused' }],
  [
    { time: '24h', agent: 'support', user: 'ada' },
    { since: '2026-11-27T12:00:00.000Z', agent_type: 'support', user_id: 'ada' },
  ],
  [{ status: 'asleep', time: 'ever', user: '', agent: 7 }, {}],
])('the address %j asks for the sessions %j', (search, query) => {
  const asked = sessionsQueryOf(parseSessionsSearch(search), NOW);
  expect(asked).toEqual(query);
  expect(SessionsGetRequest.safeParse(asked).success).toBe(true);
});

const QUERY = { base: 'handbook', tab: 'query', q: 'trains', mode: 'lexical' };
test.each([
  [QUERY, QUERY],
  [{ base: '', tab: 'sources', mode: 'best', q: 'x'.repeat(257), job: ['a'] }, {}],
])('the address %j of the knowledge bases reads %j', (search, read) => {
  expect(parseKnowledgeSearch(search)).toEqual(read);
});

const EMPTY: SourceForm = { kind: 'text', text: '', url: '', file: null, title: '', tags: '' };
test.each<[Partial<SourceForm>, object | null]>([
  [{}, null],
  [{ text: ' \n', url: 'https://example.com' }, null],
  [
    { text: 'Words.', title: ' Travel ', tags: 'a, b,,a' },
    { content: 'Words.', title: 'Travel', tags: ['a', 'b'] },
  ],
  [{ kind: 'url', url: ' https://example.com/a ' }, { url: 'https://example.com/a' }],
  [{ kind: 'file' }, null],
  [
    { kind: 'file', file: { name: 'a.pdf', base64: 'aGk=' } },
    { source_id: 'a.pdf', filename: 'a.pdf', content_base64: 'aGk=' },
  ],
])('the form %j is the document %j', (form, document) => {
  expect(documentOf({ ...EMPTY, ...form })).toEqual(document);
});

test.each([
  [{ heading_path: ['Travel', 'Trains'] }, 'Travel › Trains'],
  [{ heading_path: [], page_start: 3, page_end: 3 }, 'page 3'],
  [{ heading_path: ['A'], page_start: 3, page_end: 5 }, 'A, pages 3 to 5'],
  [{ heading_path: [] }, 'characters 0 to 1,200'],
])('the citation %j stands at %j', (citation, place) => {
  expect(placeText({ citation: { char_start: 0, char_end: 1_200, ...citation } })).toBe(place);
});

test('sizes are read in bytes, kB and MB', () => {
  expect([820, 1_400, 3_240_000].map(sizeText)).toEqual(['820 bytes', '1.4 kB', '3.2 MB']);
});
