import { expect, test } from 'vitest';
import { toolArguments } from '../../../../policy/guards/content.js';
import { inArguments, inText, only } from '../../../policy/guards/guards-fixture.js';

const all = only(
  { guard: 'path', config: { allowed_roots: ['/workspace'] } },
  { guard: 'egress', config: { allowed_hosts: ['example.com'], stages: ['message', 'tool_arguments'] } },
  {
    guard: 'secrets',
    config: {
      detect: ['credentials', 'payment_cards', 'bank_accounts', 'national_ids', 'email_addresses', 'phone_numbers'],
    },
  },
  { guard: 'prompt_injection', config: { stages: ['message', 'tool_arguments'] } },
  { guard: 'limits', config: { max_depth: 4 } },
);

const SMALL = 8 * 1024;
const FACTOR = 8;
const RUNS = 5;

/** The least processor time of some measurements, in milliseconds: what other processes do does not count. */
function leastCpuMs(work: () => void): number {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < RUNS; run++) {
    const before = process.cpuUsage();
    work();
    least = Math.min(least, process.cpuUsage(before).user / 1_000);
  }
  return least;
}

/** Pieces that a pattern begins with, so that it begins everywhere and never ends. */
test.each([
  ...['a', 'A', '4', '4 ', '4-', '(', '+1 ', '.', '/', '../', '%2e', '\\', ':', '://', '@', 'a@', 'a.', '-'],
  ...[
    'http://',
    'http:/',
    'a://b:',
    'x:x@',
    ' //a.',
    '"//a@',
    '-----BEGIN ',
    '-----BEGIN A ',
    'eyJ.',
    'eyJaaaaaaaaaaa.',
    'DE12 ',
    'DE12ABCD',
  ],
  ...[
    'password=',
    'password = ',
    'api_key:"',
    'authorization: bearer ',
    'AKIA',
    'ghp_',
    'sk-',
    'hooks.slack.com/services/',
  ],
  ...[
    'ignore ',
    'ignore all ',
    'ignore previous ',
    'you are now ',
    'act as ',
    'send api keys ',
    'repeat the ',
    'new instructions: ',
  ],
  ...['<|', '[inst', '](http', '![](https://a?', 'never tell ', 'note to ai ', 'ignoriere alle ', '忽略', 'игнорируй '],
  ...['\u0301\u0323', '\u200b', '\u{e0041}', 'ﷺ', '\ud83d', ' ', '\n', '\t'],
])('text of %j is inspected in linear time', (piece) => {
  const textOf = (chars: number): string => piece.repeat(Math.ceil(chars / piece.length));
  const inspect = (text: string) => () => {
    inText(all, text);
    inArguments(all, { path: text, command: text, url: text, host: text, text });
    all.inspect(toolArguments({ text }));
  };
  const [small, large] = [textOf(SMALL), textOf(SMALL * FACTOR)];
  inspect(small)();
  const before = Math.max(leastCpuMs(inspect(small)), 2);
  expect(leastCpuMs(inspect(large)) / before).toBeLessThan((FACTOR * FACTOR) / 2);
});
