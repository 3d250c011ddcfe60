/**
 * Writes the tables of the documentation and .env.example from the code: `npm run docs`. A table stands between two comments of its page,
 * `<!-- NAME: … -->` and `<!-- end of NAME -->`. `--check` writes nothing and fails where something is not current.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { z } from 'zod';
import { OPERATIONS } from '../dist/contracts/api/operations.js';
import { CLOSE_CODES, FRAME_ERROR_CODES, HTTP_ERRORS, RPC_ERRORS } from '../dist/contracts/errors.js';
import { EVENT_PAYLOADS } from '../dist/contracts/events.js';
import { next } from '../dist/mesh/connection/states.js';
import { DISPATCH_TRANSITIONS } from '../dist/messages/dispatch/dispatch-states.js';
import { METRICS } from '../dist/platform/metrics/metric-table.js';
import { Settings } from '../dist/runtime/config.js';

const root = join(import.meta.dirname, '..');
const read = (path) => readFileSync(join(root, path), 'utf8');
const code = (text) => `\`${text}\``;
const codes = (names) => names.map(code).join(', ');

/** A table in Markdown. */
function table(heads, rows) {
  const lines = [heads, heads.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return lines.join('\n').replaceAll('|  |', '| |').replaceAll('|  |', '| |');
}

/** The literal that a constant of a source file is set to. */
function literalOf(file, constant) {
  const source = ts.createSourceFile(file, read(file), ts.ScriptTarget.Latest, true);
  const declarations = source.statements
    .filter(ts.isVariableStatement)
    .flatMap((one) => one.declarationList.declarations);
  let literal = declarations.find(({ name }) => name.text === constant)?.initializer;
  while (literal && 'expression' in literal) literal = literal.arguments?.[0] ?? literal.expression; // `as const`, z.object()
  if (!literal) throw new Error(`${file} has no ${constant}`);
  return literal;
}

/** The members of a literal, each with the comment above it and the section that it stands in: a line comment begins one. */
function membersOf(literal) {
  const text = literal.getSourceFile().text;
  let section = '';
  return (literal.properties ?? literal.elements).map((member) => {
    let sentence = '';
    for (const { kind, pos, end } of ts.getLeadingCommentRanges(text, member.pos) ?? []) {
      const comment = text.slice(pos, end);
      if (kind === ts.SyntaxKind.SingleLineCommentTrivia) section = comment.slice(2).trim();
      else
        sentence = comment
          .slice(3, -2)
          .replace(/^\s*\* ?/gm, '')
          .replace(/\s+/g, ' ')
          .trim();
    }
    return { name: member.name?.text ?? member.text, section, sentence, value: member.initializer };
  });
}

const described = (file, constant) => membersOf(literalOf(file, constant));

/** The same where every member needs a sentence. */
function explained(file, constant) {
  const members = described(file, constant);
  const silent = members.filter(({ sentence }) => sentence === '').map(({ name }) => name);
  if (silent.length > 0) throw new Error(`${file}: ${constant} does not explain ${silent}`);
  return members;
}

const ERRORS = 'contracts/errors.ts';

/** A table of codes in contracts/errors.ts. @param cells what stands before the sentence of a code */
function errors(constant, heads, cells, section = '') {
  const listed = explained(ERRORS, constant).filter((one) => one.section === section);
  return table(
    [...heads, 'when'],
    listed.map(({ name, sentence }) => [...cells(name), sentence]),
  );
}

const httpErrors = (section) =>
  errors('HTTP_ERRORS', ['status', 'code'], (name) => [HTTP_ERRORS[name], code(name)], section);
const rpcErrors = () => errors('RPC_ERRORS', ['number', 'name'], (name) => [RPC_ERRORS[name], code(name)]);
const frameErrors = () =>
  errors('FRAME_ERROR_CODES', ['code', 'closes'], (name) => [code(name), CLOSE_CODES[name] ?? '']);

function otherCloseCodes() {
  const listed = described(ERRORS, 'CLOSE_CODES').filter(({ name }) => !FRAME_ERROR_CODES.includes(name));
  return table(
    ['code', 'when'],
    listed.map(({ name, sentence }) => [CLOSE_CODES[name], sentence]),
  );
}

/** A field of an event: text has no note. */
function field([name, { type, enum: values = [], const: only, anyOf = [] }]) {
  const choices = only === undefined ? values : [only];
  const notes = [...(choices.length > 0 ? [choices.join(', ')] : []), ...(type === 'integer' ? ['integer'] : [])];
  if (anyOf.some((one) => one.type === 'null')) notes.push('or null');
  return notes.length > 0 ? `${code(name)} (${notes.join(' ')})` : code(name);
}

function eventTypes() {
  const rows = Object.entries(EVENT_PAYLOADS).map(([type, payload]) => {
    const { description, properties } = z.toJSONSchema(payload);
    return [code(type), description, Object.entries(properties).map(field).join(', ')];
  });
  return table(['type', 'when', 'fields of `event`'], rows);
}

function metrics(section) {
  const listed = described('platform/metrics/metric-table.ts', 'METRICS').filter((one) => one.section === section);
  const rows = listed.map(({ name }) => {
    const { type, labels, help } = METRICS[name];
    return [code(name), labels.length > 0 ? `${type}: ${codes(labels)}` : type, help];
  });
  return table(['metric', 'type, labels', ''], rows);
}

/** Every operation, with a link to its section of the page; the page has no other sections of operations. */
function operations() {
  const rows = Object.values(OPERATIONS).map(({ method, path, access, othersNeed, summary }) => {
    const heading = `${method} ${path}`;
    const anchor = heading.toLowerCase().replace(/[^\w\- ]/g, '');
    return [`[${code(heading)}](#${anchor.replaceAll(' ', '-')})`, othersNeed ?? access, summary];
  });
  const links = rows.map(([link]) => link).join();
  const others = read('docs/api.md')
    .match(/(?<=^### )`(GET|POST) \/.*`/gm)
    .filter((heading) => !links.includes(heading));
  if (others.length > 0) throw new Error(`docs/api.md explains operations that do not exist: ${others}`);
  return table(['operation', 'scope', 'what it does'], rows);
}

function connectionStates() {
  const rows = described('mesh/connection/states.ts', 'TRANSITIONS').flatMap(({ name: from, value }) =>
    membersOf(value).map(({ name: event, sentence }) => {
      const { state, close = '', failInFlight } = next(from, event);
      return [
        code(from),
        sentence ? `${code(event)}: ${sentence}` : code(event),
        code(state),
        close,
        failInFlight ? 'fails' : '',
      ];
    }),
  );
  return table(['state', 'event', 'next', 'closes with', 'in flight'], rows);
}

function dispatchStates() {
  const listed = explained('messages/dispatch/dispatch-states.ts', 'DISPATCH_TRANSITIONS');
  const rows = DISPATCH_TRANSITIONS.map(({ event, from, to, sql }, index) => [
    ...[code(event), from.join(', '), to, sql, listed[index].sentence],
  ]);
  return table(['event', 'from', 'to', 'function', 'what happens'], rows);
}

function layers() {
  const LAYERS = '.dependency-cruiser.cjs';
  const texts = (list) => list?.elements.map(({ text }) => text) ?? [];
  const also = described(LAYERS, 'ALSO').map(({ name, value }) => {
    const { files, types } = Object.fromEntries(membersOf(value).map((one) => [one.name, texts(one.value)]));
    const named = (files ?? []).map((pattern) => code(pattern.replace(/[\^\\$]/g, '')));
    return [name, [...named, ...(types ? [`${types.join(', ')} as types`] : [])]];
  });
  const rows = explained(LAYERS, 'LAYERS').map(({ name, sentence, value }) => {
    const others = Object.fromEntries(also)[name] ?? [];
    const folders = texts(value).join(', ');
    return [code(`${name}/`), sentence, [...(folders ? [folders] : []), ...others].join('; ')];
  });
  return table(['folder', 'what is in it', 'may import'], rows);
}

/** The tables of each page by their names. */
const PAGES = {
  'docs/agents.md': { 'states of a connection': connectionStates },
  'docs/api.md': { operations },
  'docs/development.md': { layers },
  'docs/durability.md': { 'states of a dispatch': dispatchStates },
  'docs/errors.md': {
    'HTTP errors': () => httpErrors(''),
    'errors of the upgrade': () => httpErrors('The WebSocket upgrade, in the order of its checks'),
    'JSON-RPC errors': rpcErrors,
    'frame errors': frameErrors,
    'other close codes': otherCloseCodes,
  },
  'docs/events.md': { 'event types': eventTypes },
  'docs/metrics.md': Object.fromEntries(
    ['process', 'http', 'messages', 'mesh', 'database', 'queues'].map((name) => [
      `metrics: ${name}`,
      () => metrics(name),
    ]),
  ),
};

function page(path, tables) {
  return Object.entries(tables).reduce((text, [name, write]) => {
    const [first, last] = [`<!-- ${name}, written by \`npm run docs\` -->\n`, `\n<!-- end of ${name} -->`];
    const [before, rest] = text.split(first);
    const [, after] = rest?.split(last) ?? [];
    if (after === undefined) throw new Error(`${path} has no ${first.trim()} with its end`);
    return `${before}${first}${write()}${last}${after}`;
  }, read(path));
}

const WIDTH = 140;

/** A sentence as comments of a shell file. */
function comment(sentence) {
  const lines = [''];
  for (const word of sentence.split(' ')) {
    if (`${lines.at(-1)} ${word}`.length > WIDTH) lines.push(word);
    else lines[lines.length - 1] = `${lines.at(-1)} ${word}`.trim();
  }
  return lines.map((line) => `# ${line}`).join('\n');
}

function environment() {
  const intro =
    'Every setting there is. All are optional: a bare `npm start` needs none. A line that is commented out shows the default if there is one, otherwise an example. Keep secrets in the environment of the process, not in a file under version control. `npm run docs` writes this file.';
  const defaults = Settings.parse({});
  const blocks = [comment(intro)];
  for (const { name, section, sentence } of explained('runtime/config.ts', 'Settings')) {
    const [text, example = ''] = sentence.split(' @example ');
    const value = ['string', 'number'].includes(typeof defaults[name]) ? defaults[name] : example;
    const heading = `# --- ${section} `.padEnd(WIDTH, '-');
    if (!blocks.at(-1).startsWith(heading)) blocks.push(heading);
    blocks.push(`${blocks.pop()}\n${comment(text)}\n#${name}=${value}`);
  }
  return `${blocks.join('\n\n')}\n`;
}

const written = {
  ...Object.fromEntries(Object.entries(PAGES).map((one) => [one[0], page(...one)])),
  '.env.example': environment(),
};
const stale = Object.keys(written).filter((path) => written[path] !== read(path));
if (process.argv.includes('--check')) {
  for (const path of stale) console.error(`${path} is not current: npm run docs`);
  process.exitCode = stale.length > 0 ? 1 : 0;
} else {
  for (const path of stale) writeFileSync(join(root, path), written[path]);
}
