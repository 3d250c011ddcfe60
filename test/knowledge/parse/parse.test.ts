import iconv from 'iconv-lite';
import { describe, expect, it } from 'vitest';
import type { TypeHints } from '../../../knowledge/parse/detect-type.js';
import type { Extracted } from '../../../knowledge/parse/extracted.js';
import { parseDocument } from '../../../knowledge/parse/parse.js';
import { ParseError } from '../../../knowledge/parse/parse-error.js';
import { docxOf, pdfOf, zipOf } from './documents.js';

const NOISE = Buffer.from(Array.from({ length: 4_000 }, (_, at) => (at * 7) % 32));
/** As an encrypted DOCX begins. */
const SEALED = Buffer.from(`d0cf11e0a1b11ae1${'00'.repeat(600)}`, 'hex');
/** `テスト` in ISO-2022-JP. */
const JAPANESE = Buffer.from('1b2442254625392548' + '1b2842', 'hex');

const parse = (content: string | Buffer, hints: TypeHints = {}) => parseDocument(Buffer.from(content), hints);

const refusal = (content: string | Buffer, hints: TypeHints = {}) =>
  parse(content, hints).then(
    () => 'read',
    (error: unknown) => (error instanceof ParseError ? error.code : String(error)),
  );

/** The blocks as `kind: text`. */
const shown = ({ text, blocks }: Extracted) =>
  blocks.map(({ kind, level, start, end }) => `${kind}${level ?? ''}: ${text.slice(start, end)}`);

describe('the type of a document', () => {
  it.each<[string, string | Buffer, TypeHints, string]>([
    ['text without a hint', 'Just words.', {}, 'text/plain'],
    ['Markdown by its headings', '# One\n\nText.', {}, 'text/markdown'],
    ['HTML by its start', '<!DOCTYPE html><p>Hi</p>', {}, 'text/html'],
    ['JSON by parsing it', '{"a": 1}', {}, 'application/json'],
    ['a text that starts with a bracket', '[draft] not JSON', {}, 'text/plain'],
    ['CSV by its name', 'a,b\n1,2', { filename: 'x.CSV' }, 'text/csv'],
    ['CSV that a server calls text', 'a,b\n1,2', { filename: 'x.csv', content_type: 'text/plain' }, 'text/csv'],
    ['PDF that is called text', pdfOf([['Hi']]), { content_type: 'text/plain' }, 'application/pdf'],
    ['text that begins like a picture', 'BM is how bitmaps begin.', {}, 'text/plain'],
    ['HTML behind comments', `\uFEFF <!-- a > b -->\n${'<!---->'.repeat(5_000)} <HTML lang="en">Hi`, {}, 'text/html'],
    ['comments before words', `${'<!-- -->'.repeat(5_000)}words`, {}, 'text/plain'],
    ['a comment without an end', '<!-- <html>', {}, 'text/plain'],
    ['HTML by its content type', '<p>Hi', { content_type: 'text/html; charset=utf-8' }, 'text/html'],
  ])('%s', async (_, content, hints, type) => {
    expect((await parse(content, hints)).contentType).toBe(type);
  });

  it.each<[string, string | Buffer, TypeHints, string]>([
    ['nothing', '', {}, 'EMPTY'],
    ['white space', ' \n\t ', {}, 'EMPTY'],
    ['HTML without text', '<html><script>1</script></html>', {}, 'EMPTY'],
    ['a ZIP archive', zipOf({ a: 'b' }), {}, 'UNSUPPORTED_TYPE'],
    ['a picture', Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), {}, 'UNSUPPORTED_TYPE'],
    ['bytes that mean nothing', NOISE, {}, 'UNSUPPORTED_TYPE'],
    ['text that is called PDF', 'not a PDF', { content_type: 'application/pdf' }, 'DAMAGED'],
    ['text that is called DOCX', 'not a DOCX', { filename: 'a.docx' }, 'DAMAGED'],
    ['an archive that is called DOCX', zipOf({ a: 'b' }), { filename: 'a.docx' }, 'DAMAGED'],
    ['a cut PDF', pdfOf([['Hi']]).subarray(0, 200), {}, 'DAMAGED'],
    ['an encrypted PDF', pdfOf([['Hi']], { encrypt: true }), {}, 'ENCRYPTED'],
    ['a PDF of images', pdfOf([null, null]), {}, 'NO_TEXT'],
    ['broken JSON', '{"a": ', { content_type: 'application/json' }, 'DAMAGED'],
    ['an encrypted DOCX', SEALED, { filename: 'a.docx' }, 'ENCRYPTED'],
  ])('refuses %s', async (_, content, hints, code) => {
    expect(await refusal(content, hints)).toBe(code);
  });
});

describe('the charset of a text', () => {
  const words = 'Grüße aus Köln. Les élèves étaient où? Größe, Straße, Übermut, naïve.';
  const plain = 'plain '.repeat(30_000);
  const inCharset = (charset: string, text = words, addBOM = false) => iconv.encode(text, charset, { addBOM });
  const named = (charset: string): TypeHints => ({ content_type: `text/plain; charset=${charset}` });
  it.each<[string, Buffer, TypeHints, string]>([
    ['UTF-8', Buffer.from(words), {}, words],
    ['UTF-8 with a byte-order mark', Buffer.from(`\uFEFF${words}`), {}, words],
    ['UTF-16 LE', inCharset('utf-16le', words, true), {}, words],
    ['UTF-16 BE', inCharset('utf-16be', words, true), {}, words],
    ['UTF-16 LE that the caller names', inCharset('utf-16le', 'Plain.'), named('UTF-16LE'), 'Plain.'],
    ['UTF-16 BE that the caller names', inCharset('utf-16be', 'Plain.'), named('"utf-16be"'), 'Plain.'],
    ['Latin 1 without a word about it', inCharset('windows-1252'), {}, words],
    ['Latin 1 behind much ASCII', inCharset('windows-1252', plain + words), {}, plain + words],
    ['a charset that is named', inCharset('cp850'), named('cp850'), words],
    ['Japanese in ASCII bytes that the caller names', JAPANESE, named('iso-2022-jp'), 'テスト'],
    ['Japanese in ASCII bytes that nobody names', JAPANESE, {}, 'テスト'],
    ['UTF-8 that is called something else', Buffer.from(words), named('iso-8859-1'), words],
    ['UTF-8 whose caller names a charset that there is not', Buffer.from(words), named('utf-99'), words],
  ])('%s', async (_, content, hints, text) => {
    expect((await parse(content, hints)).extracted.text).toBe(text);
  });

  it('keeps what is readable of invalid UTF-8, and makes it well-formed', async () => {
    const { extracted } = await parse(
      Buffer.concat([Buffer.from('good '), Buffer.from([0xff, 0xfe, 0xc3]), Buffer.from(' end')]),
    );
    expect(extracted.text).toMatch(/^good .* end$/);
    expect(extracted.text.isWellFormed()).toBe(true);
  });

  it('keeps a byte-order mark that stands inside, so that offsets are those of the file', async () => {
    expect((await parse('\uFEFFone\uFEFFtwo \uFEFF three')).extracted.text).toBe('one\uFEFFtwo \uFEFF three');
  });

  it('has no NUL, which Postgres cannot store', async () => {
    expect((await parse('a\u0000b '.padEnd(200, 'x'))).extracted.text.startsWith('a\uFFFDb')).toBe(true);
  });
});

describe('what formats say', () => {
  it('Markdown keeps its text and offsets, headings and table rows', async () => {
    const text = '# Guide\n\nIntro.\n\n## Install\n\n- one\n- two\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\nEnd\n===\n';
    const { extracted } = await parse(text, { filename: 'a.md' });
    expect(extracted.text).toBe(text);
    expect(extracted.title).toBe('Guide');
    expect(shown(extracted)).toEqual([
      'heading1: # Guide',
      'text: Intro.',
      'heading2: ## Install',
      'text: - one',
      'text: - two',
      'row: | a | b |',
      'row: | - | - |',
      'row: | 1 | 2 |',
      'heading1: End\n===',
    ]);
  });

  it.each<[string, string, string[]]>([
    [
      'tables without pipes at the ends of their lines',
      'Fruit:\n\nname | count\n--- | ---\npear | 3\nplum | 4\n\nEither a | or none.\n',
      [
        'text: Fruit:',
        'row: name | count',
        'row: --- | ---',
        'row: pear | 3',
        'row: plum | 4',
        'text: Either a | or none.',
      ],
    ],
    [
      'tables in quotes and lists',
      '> Look:\n> | a | b |\n> |---|---|\n> | 1 | 2 |\n\n- item\n\n  a | b\n  -|-\n  1 | 2\n- next\n',
      [
        'text: > Look:',
        'row: > | a | b |',
        'row: > |---|---|',
        'row: > | 1 | 2 |',
        'text: - item',
        'row:   a | b',
        'row:   -|-',
        'row:   1 | 2',
        'text: - next',
      ],
    ],
    [
      'a table that ends at a line without a pipe',
      'a | b\n:-: | -:\n1 | 2\nwords after it\nmore | words\n',
      ['row: a | b', 'row: :-: | -:', 'row: 1 | 2', 'text: words after it\nmore | words'],
    ],
  ])('Markdown has %s, however long it is', async (_, table, blocks) => {
    expect(shown((await parse(table, { filename: 'a.md' })).extracted)).toEqual(blocks);
    const filler = 'Words, words.\n\n'.repeat(80_000);
    const long = shown((await parse(`${table}\n${filler}`, { filename: 'a.md' })).extracted);
    expect(long.filter((block) => block.startsWith('row'))).toEqual(blocks.filter((block) => block.startsWith('row')));
  });

  const matter = '---\ntitle: "Winter: a guide"\ntags: [snow]\n---\n\n';
  it.each<[string, string, string | undefined, string[]]>([
    [
      'front matter, which names its title',
      `${matter}# Snow\n\nText.`,
      'Winter: a guide',
      ['text: title: "Winter: a guide"\ntags: [snow]', 'heading1: # Snow', 'text: Text.'],
    ],
    ['front matter alone', '---\ntitle: Bare\n...', 'Bare', ['text: title: Bare']],
    [
      'front matter without a title',
      '---\ndate: 2026-01-01\n---\nIntro.\n\n## Part\n\n# Real title\n',
      'Real title',
      ['text: date: 2026-01-01', 'text: Intro.', 'heading2: ## Part', 'heading1: # Real title'],
    ],
    [
      'a line at its beginning that is no front matter',
      '---\n\n# Title\n\nText: yes.\n\n---\n',
      'Title',
      ['text: ---', 'heading1: # Title', 'text: Text: yes.', 'text: ---'],
    ],
    [
      'no title where no heading is of the first level',
      '## Part\n\nText.',
      undefined,
      ['heading2: ## Part', 'text: Text.'],
    ],
  ])('Markdown has %s', async (_, text, title, blocks) => {
    const { extracted } = await parse(text, { filename: 'a.md' });
    expect(extracted.text).toBe(text);
    expect(extracted.title).toBe(title);
    expect(shown(extracted)).toEqual(blocks);
  });

  it('long Markdown is divided by its lines in the same way', async () => {
    const part = '# Guide\n\nIntro.\n\n```\n# no heading\n```\n\n| a |\n\n';
    const { extracted } = await parse(part.repeat(30_000), { filename: 'a.md' });
    expect(shown(extracted).slice(0, 4)).toEqual([
      'heading1: # Guide',
      'text: Intro.',
      'text: ```\n# no heading\n```',
      'row: | a |',
    ]);
    expect(extracted.blocks).toHaveLength(4 * 30_000);
  });

  it('HTML without scripts and navigation, with rows that name their columns', async () => {
    const page = `<html><head><title>A &amp; B</title><style>x</style></head><body><nav>Menu</nav><h1>Head <b>line</b></h1>
      <p>One<br>two</p><script>no()</script><table><tr><th>City</th><th>People</th></tr><tr><td>Köln</td><td>1 million</td></tr></table>
      <pre>a\n  b</pre></body></html>`;
    const { extracted } = await parse(page);
    expect(extracted.title).toBe('A & B');
    expect(shown(extracted)).toEqual([
      'heading1: Head line',
      'text: One two',
      'row: City | People',
      'row: City: Köln; People: 1 million',
      'text: a\n  b',
    ]);
  });

  const form = '<p>Read me</p><select><option>No</option></select><input value="no"><button>Send</button>';
  const inner = '<table><tr><td>x</td><td>y</td></tr></table>';
  it.each<[string, string | Buffer, TypeHints, string[]]>([
    ['a page that is all in a form, without the fields', `<html><form>${form}</form>`, {}, ['text: Read me']],
    [
      'the words of nested tables in the cell around them',
      `<html><table><tr><td>a ${inner} b</td><td>c</td></tr></table>`,
      {},
      ['row: a x | y b | c'],
    ],
    [
      'rows of CSV, which name their columns',
      'name;city\n"Ada; L.";London\nBob;\n',
      { filename: 'a.csv' },
      ['row: name: Ada; L.; city: London', 'row: name: Bob'],
    ],
    [
      'headings and table rows of a DOCX',
      docxOf(['# Chapter', 'Words.', ['a', 'b']]),
      {},
      ['heading1: Chapter', 'text: Words.', 'row: a | b'],
    ],
  ])('%s', async (_, content, hints, blocks) => {
    expect(shown((await parse(content, hints)).extracted)).toEqual(blocks);
  });

  it('JSON values are lines with their path', async () => {
    const long = 'word '.repeat(200);
    const { extracted } = await parse(
      JSON.stringify({ shop: { open: true, items: [{ id: 1, note: long }, { id: 2 }] } }),
    );
    expect(shown(extracted)).toEqual([
      'row: shop.open: true',
      'row: shop.items[0].id: 1',
      `row: shop.items[0].note: ${long.trim()}`,
      'row: shop.items[1]: id: 2',
    ]);
  });

  it('PDF has pages and a title', async () => {
    const { extracted } = await parse(pdfOf([['First page.'], ['Second page.', 'More.']], { title: 'Report' }));
    expect(extracted.title).toBe('Report');
    expect(extracted.pages).toHaveLength(2);
    expect(extracted.text.slice(extracted.pages[1])).toMatch(/^Second page\.\s+More\.$/);
  });
});
