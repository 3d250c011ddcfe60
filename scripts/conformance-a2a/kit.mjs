/** The public kits: detects the kit in a folder, prepares its Python, and runs its tests. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const PLUGIN = 'kit_access';
const PLUGIN_FOLDER = import.meta.dirname;
/** Python code that prints the requirements of the project in the working directory. */
const REQUIREMENTS =
  'import tomllib; print("\\n".join(tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]))';

/** The test categories of each kit, as its own runner has them. A failure in a `required` category fails the run. */
const KITS = [
  {
    name: 'A2A 0.3',
    marks: ['tests/mandatory', 'tests/optional/capabilities'],
    cardVersion: '',
    target: (baseUrl) => [`--sut-url=${baseUrl}/send`, '--test-scope=all', '--transports=jsonrpc'],
    categories: [
      { name: 'mandatory', required: true, args: ['tests/mandatory', '-m', 'mandatory_jsonrpc or mandatory_protocol'] },
      { name: 'capabilities', required: true, args: ['tests/optional/capabilities'] },
      { name: 'quality', required: false, args: ['tests/optional/quality'] },
      { name: 'features', required: false, args: ['tests/optional/features'] },
    ],
  },
  {
    name: 'A2A 1.0',
    marks: ['tests/compatibility', 'tck/requirements'],
    cardVersion: '1.0',
    target: (baseUrl) => [`--sut-host=${baseUrl}`, '--transport=jsonrpc'],
    categories: [{ name: 'all', required: true, args: ['tests/compatibility'] }],
  },
];

/**
 * Detects the kit in a folder.
 * @throws Error when there is none
 */
export function kitIn(folder) {
  const kit = KITS.find(({ marks }) => marks.every((mark) => existsSync(join(folder, mark))));
  if (!kit) throw new Error(`${folder} holds neither branch of the A2A kit (a2aproject/a2a-tck, 0.3.x or 1.0-dev)`);
  return kit;
}

/** Runs a program. @throws Error with its output when it fails */
function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
    const output = [];
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk));
    child.once('error', reject);
    child.once('close', (code) => {
      const written = Buffer.concat(output).toString();
      if (code === 0) resolve(written);
      else reject(new Error(`${command} ${args.slice(0, 3).join(' ')} … ended with ${code}\n${written.slice(-2_000)}`));
    });
  });
}

/**
 * A virtual environment with the kit's requirements, created once for each list of requirements.
 * @param {string} folder of the kit
 * @param {string} cacheDir created when missing
 * @param {AbortSignal} signal
 */
export async function pythonFor(folder, cacheDir, signal) {
  const listed = await run('python3', ['-c', REQUIREMENTS], { cwd: folder, signal });
  const requirementsFile = join(folder, 'requirements.txt');
  const requirements = listed + (existsSync(requirementsFile) ? readFileSync(requirementsFile, 'utf8') : '');
  const digest = createHash('sha256').update(requirements).digest('hex').slice(0, 16);
  const home = join(cacheDir, `a2a-kit-${digest}`);
  const python = join(home, 'bin', 'python');
  const complete = join(home, 'complete');
  if (existsSync(complete)) return python;
  console.log(`installing the kit's requirements in ${home} …`);
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  await run('python3', ['-m', 'venv', home], { signal });
  const list = join(home, 'requirements.txt');
  writeFileSync(list, requirements);
  await run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', list], { signal });
  writeFileSync(`${complete}.new`, '');
  renameSync(`${complete}.new`, complete);
  return python;
}

/**
 * Runs one category; pytest writes its progress to standard output.
 * @returns {Promise<{ test: string, outcome: string, reason: string }[]>} the outcome of each test
 * @throws Error when pytest itself fails
 */
export async function runCategory({ kit, category, folder, python, platform, resultsFile, extra, signal }) {
  mkdirSync(dirname(resultsFile), { recursive: true });
  writeFileSync(resultsFile, '');
  const args = [
    '-m',
    'pytest',
    ...category.args,
    ...kit.target(platform.baseUrl),
    '-p',
    PLUGIN,
    '-p',
    'no:cacheprovider',
  ];
  const env = {
    ...process.env,
    PYTHONPATH: PLUGIN_FOLDER,
    PYTHONDONTWRITEBYTECODE: '1',
    PYTHONUNBUFFERED: '1',
    CONFORMANCE_BASE_URL: platform.baseUrl,
    CONFORMANCE_TOKEN: platform.token,
    CONFORMANCE_RESULTS: resultsFile,
    CONFORMANCE_CARD_VERSION: kit.cardVersion,
  };
  const child = spawn(python, [...args, '-v', '--tb=short', '--no-header', '-W', 'ignore', ...extra], {
    cwd: folder,
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
    signal,
    detached: true, // on Ctrl-C this script stops pytest by its signal
  });
  const [code] = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (...ended) => resolve(ended));
  });
  // 0 and 1: the tests ran; 5: no test was selected.
  if (![0, 1, 5].includes(code)) throw new Error(`pytest ended with ${code} in the category ${category.name}`);
  return readFileSync(resultsFile, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}
