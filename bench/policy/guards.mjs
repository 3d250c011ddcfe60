/** What guards cost per KiB of content (docs/guards.md). Part of `npm run bench:policy`. */
import { parseArgs } from 'node:util';
import { messageContent, toolArguments } from '../../dist/policy/guards/content.js';
import { compileGuards } from '../../dist/policy/guards/settings.js';
import { machineLine, markdownTable } from '../harness/report.mjs';

const GUARDS = ['path', 'egress', 'secrets', 'prompt_injection', 'limits'];
const CONFIGS = {
  path: { allowed_roots: ['/workspace'] },
  egress: { allowed_hosts: ['*.example.com'] },
  limits: { max_message_bytes: 200_000, max_argument_bytes: 200_000, max_depth: 20 },
};
const PROSE =
  'The delivery for order 4711 left on Tuesday, and the customer asks whether the previous instructions about the address still hold. ';
/** Much that looks like the beginning of something. */
const HOSTILE = 'AKIA ghp_ eyJa. 4111 1111 ignore all of the above, password: https://a.b/../c -----BEGIN ';
const STREAM_CHARS = 5;

const only = (names) =>
  compileGuards(
    GUARDS.map((guard) => ({ guard, enabled: names.includes(guard), decision: 'allow', config: CONFIGS[guard] ?? {} })),
    () => true,
  );

const filled = (text, bytes) => text.repeat(Math.ceil(bytes / text.length)).slice(0, bytes);

/** Microseconds for a call, the median of `runs` measurements. */
function microseconds(work, runs, callsPerRun) {
  const times = [];
  for (let run = 0; run < runs; run += 1) {
    const from = performance.now();
    for (let call = 0; call < callsPerRun; call += 1) work();
    times.push(((performance.now() - from) * 1_000) / callsPerRun);
  }
  return times.sort((one, other) => one - other)[Math.floor(runs / 2)];
}

/** Rows of the table: microseconds per KiB of each guard, of harmless and of hostile text, as arguments and as a message. */
export function guardRows({ kib = 16, runs = 15 } = {}) {
  const bytes = kib * 1_024;
  const inspect = (settings, text) => {
    const lines = text.match(/.{1,200}/g) ?? [];
    settings.inspect(messageContent([{ kind: 'text', text }], {}));
    settings.inspect(toolArguments({ path: '/workspace/a', lines }));
  };
  const cost = (settings, text) => {
    const filledText = filled(text, bytes);
    const calls = Math.max(2, Math.round(64 / kib));
    return (microseconds(() => inspect(settings, filledText), runs, calls) / kib / 2).toFixed(1);
  };
  const cases = [...GUARDS.map((guard) => [guard, only([guard])]), ['all', only(GUARDS)]];
  return cases.map(([name, settings]) => [name, cost(settings, PROSE), cost(settings, HOSTILE)]);
}

/** Microseconds per KiB of a stream that comes in pieces of five characters, with the guards that look at streams. */
export function streamCost({ kib = 16, runs = 9 } = {}) {
  const text = filled(PROSE, kib * 1_024);
  const pieces = text.match(new RegExp(`.{1,${STREAM_CHARS}}`, 'gs')) ?? [];
  const settings = only(['secrets']);
  const stream = () => {
    const inspector = settings.streamInspector('a');
    for (const piece of pieces) inspector.push(piece, piece);
    inspector.end();
  };
  stream();
  return (microseconds(stream, runs, 1) / kib).toFixed(0);
}

/** Prints what guards cost. */
export function reportGuards(options) {
  console.log(markdownTable(['guard', 'µs per KiB, prose', 'µs per KiB, hostile'], guardRows(options)));
  console.log(`\nA stream in pieces of ${STREAM_CHARS} characters, guard secrets: ${streamCost(options)} µs per KiB.`);
}

if (import.meta.main ?? process.argv[1]?.endsWith('policy/guards.mjs')) {
  const { values } = parseArgs({ options: { kib: { type: 'string', default: '16' } } });
  console.log(`${machineLine()}\n`);
  reportGuards({ kib: Number(values.kib) });
}
