import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { credentialOf, outputOf, startProgram, startPythonAgent } from '../../../sdk/python/programs.js';
import { fleetClient } from '../../../setup/fleet-client.js';
import { startPlatform } from '../../../setup/platform/platform.js';
import { pythonWithPackage } from '../../../setup/python-package.js';

/** The programs in Python of the documentation, as they stand there, in a folder as a reader makes it. */
const root = join(import.meta.dirname, '..', '..', '..', '..');
const programsOf = (document: string) =>
  [...readFileSync(join(root, document), 'utf8').matchAll(/```python\n([\s\S]*?)```/g)].map(([, code = '']) => code);
const [storyteller = '', ask = '', ...others] = programsOf('python/README.md');
/** Those with a name of their own in their first line. */
const named = others.map((code): [string, string] => [/^# (\w+\.py)\n/.exec(code)?.[1] ?? '', code]);
const STORY = 'Once upon a time there was a fleet.\n';

const folder = mkdtempSync(join(inject('runDir'), 'python-readme-'));
const [docsShop = ''] = programsOf('docs/agents.md');
const askWriter = ask.replace('agent_type="storyteller"', 'agent_type="writer"');
const files = { 'storyteller.py': storyteller, 'ask.py': ask, 'ask_writer.py': askWriter, 'docs_shop.py': docsShop };
for (const [name, code] of [...Object.entries(files), ...named]) writeFileSync(join(folder, name), code);
const [python, shared] = await Promise.all([pythonWithPackage(['langgraph']), startPlatform()]);
const client = fleetClient(shared.platform);

const run = (file: string, role: 'agent' | 'caller') =>
  startProgram(python, [file], credentialOf(shared, role), { cwd: folder });
const SHOP = 'You said: Hello\ninput-required Refund order A-17?\ncompleted Order A-17 is refunded.\n';

test('every program of the README has a name and is run here', () => {
  const names = ['shop.py', 'writer.py', 'refunder.py', 'ask_refunder.py', 'customer.py'];
  expect(named.map(([name]) => name)).toEqual(names);
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
