import { describe, expect, it } from 'vitest';
import { citationLine, questionIn } from '../../examples/librarian/ask.js';
import { type PendingDocument, sliceOf } from '../../knowledge/ingest/documents.js';

const KB = 1024;
const document = (content_bytes: number, more: Partial<PendingDocument> = {}): PendingDocument => ({
  ordinal: 0,
  source_id: 's',
  place: 1,
  input: { tags: [], metadata: {} },
  content_bytes,
  content_hash: null,
  attempts: 0,
  ...more,
});
const url = (attempts = 0) => document(0, { input: { tags: [], metadata: {}, url: 'https://example.com' }, attempts });

describe('a slice of a job', () => {
  it.each<[string, PendingDocument[], number]>([
    ['nothing', [], 0],
    ['small documents together', Array.from({ length: 10 }, () => document(10 * KB)), 10],
    ['as many as fit', Array.from({ length: 10 }, () => document(200 * KB)), 5],
    ['one that is larger than a slice alone', [document(5_000 * KB), document(1)], 1],
    ['a few addresses, whose sizes nobody knows', Array.from({ length: 10 }, () => url()), 4],
    ['one that was begun before alone', [document(1, { attempts: 1 }), document(1)], 1],
    [
      'those before one that was begun before',
      [document(1), document(1), document(1, { attempts: 2 }), document(1)],
      2,
    ],
  ])('takes %s', (_, pending, count) => {
    expect(sliceOf(pending)).toHaveLength(count);
  });
});

describe('the librarian', () => {
  it.each<[string, string | undefined]>([
    ['ask: what is a lease', 'what is a lease'],
    ['Search for walruses', 'for walruses'],
    ['How long does a lease last?', 'How long does a lease last?'],
    ['summarize: Is it so? It is.', undefined],
    ['A long text.\nIs it a question?', undefined],
    ['hello', undefined],
  ])('finds the question in %j', (text, question) => {
    expect(questionIn(text)).toBe(question);
  });

  it('says where a passage stands', () => {
    const place = { pageStart: 2, pageEnd: 3, charStart: 10, charEnd: 90 };
    const citation = { ...place, filename: 'a.pdf', headingPath: ['Guide', 'Seals'] };
    expect(citationLine({ title: 'Guide', citation })).toBe('Guide, Seals, pages 2 to 3, characters 10 to 90, a.pdf');
  });
});
