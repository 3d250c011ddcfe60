import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FleetClient } from '../../../../sdk/index.js';
import { credentialOf, outputOf, startProgram, startPythonAgent } from '../../../sdk/python/programs.js';
import { type SharedPlatform, startPlatform } from '../../../setup/platform/platform.js';
import { pythonWithPackage } from '../../../setup/python-package.js';

/** The programs in Python of the documentation, as they stand there, in a folder as a reader makes it. */
const root = join(import.meta.dirname, '..', '..', '..', '..');
const programsOf = (document: string) =>
  [...readFileSync(join(root, document), 'utf8').matchAll(/```python\n([\s\S]*?)```/g)].map(([, code = '']) => code);
const [storyteller = '', ask = '', ...others] = programsOf('python/README.md');
/** Those with a name of their own in their first line. */
const named = others.map((code): [string, string] => [/^# (\w+\.py)\n/.exec(code)?.[1] ?? '', code]);
const STORY = 'Once upon a time there was a fleet.\n';

let folder: string;
let python: string;
let shared: SharedPlatform;
let client: FleetClient;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'python-readme-'));
  const files = [['storyteller.py', storyteller], ['ask.py', ask], ...named] as const;
  for (const [name, code] of files) writeFileSync(join(folder, name), code);
  writeFileSync(join(folder, 'ask_writer.py'), ask.replace('agent_type="storyteller"', 'agent_type="writer"'));
  const [docsShop = ''] = programsOf('docs/agents.md');
  writeFileSync(join(folder, 'docs_shop.py'), docsShop);
  [python, shared] = await Promise.all([pythonWithPackage(['langgraph']), startPlatform({ FLEET_EXAMPLES: 'off' })]);
  const { base_url: url, client_id: clientId, client_secret: clientSecret } = shared.platform.devJson();
  client = new FleetClient({ url, clientId, clientSecret });
}, 300_000);

afterAll(async () => {
  client?.destroy();
  await shared?.dispose();
  rmSync(folder, { recursive: true });
});

const run = (file: string, role: 'agent' | 'caller') =>
  startProgram(python, [file], credentialOf(shared, role), { cwd: folder });
const SHOP = 'You said: Hello\ninput-required Refund order A-17?\ncompleted Order A-17 is refunded.\n';

test('every program of the README has a name and is run here', () => {
  expect(named.map(([name]) => name)).toEqual([
    'shop.py',
    'writer.py',
    'refunder.py',
    'ask_refunder.py',
    'customer.py',
  ]);
});

test.each([
  ['storyteller.py', 'storyteller', 'ask.py', STORY],
  ['shop.py', 'shop', 'customer.py', SHOP],
  ['docs_shop.py', 'shop', 'customer.py', SHOP],
  ['writer.py', 'writer', 'ask_writer.py', STORY],
  ['refunder.py', 'refunder', 'ask_refunder.py', 'input-required Refund order A-17?\nOrder A-17 is refunded.\n'],
])('%s joins as %s and answers %s', async (file, type, caller, printed) => {
  const agent = await startPythonAgent(run(file, 'agent'), type, client);
  expect(await outputOf(run(caller, 'caller'))).toBe(printed);
  expect(agent.output).toMatch(new RegExp(`^agent ${type}: joined the platform `));
});
