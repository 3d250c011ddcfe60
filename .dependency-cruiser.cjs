/**
 * Who may import whom: the table of the layers as rules. Tests and benchmarks are free, everything else is listed here.
 * A line reads: files in this folder may import the folder itself, and the folders named.
 */
const LAYERS = {
  /** zod schemas and constants: requests, responses, frames, events, error codes, limits, permissions; imports only zod */
  contracts: [],
  /** config, logger, errors, ids, secrets, trace context, loops, time limits, token buckets */
  runtime: ['contracts'],
  /** pool, batching of calls, rows as JSON, migrations, events */
  db: ['contracts', 'runtime'],
  /** the one guarded HTTP client, the reader of server-sent events; CORS and the answer to what is not HTTP, for API and mesh */
  http: ['contracts', 'runtime'],
  /** who administered what: each change writes an entry in its transaction */
  audit: ['contracts', 'runtime', 'db'],
  /** tenants, credentials, signing keys, tokens */
  auth: ['contracts', 'runtime', 'db', 'audit'],
  /** events: their positions, readers, streams and lists; `traces/`: spans derived from the record, and their export */
  telemetry: ['contracts', 'runtime', 'db'],
  /** usage reports, quotas, prices: what follows from events, and the counts of tool calls */
  usage: ['contracts', 'runtime', 'db', 'audit', 'telemetry'],
  /**
   * policies: `places/` (paths and hosts that arguments name), `matching/`, `indexing/`, `evaluators/` (CEL, webhooks), the decision, the
   * cache of compiled policies; `guards/`
   */
  policy: ['contracts', 'runtime', 'db', 'http', 'audit'],
  /** registration, health, load */
  agents: ['contracts', 'runtime', 'db', 'http', 'audit', 'policy'],
  /** sessions and the agents in them */
  sessions: ['contracts', 'runtime', 'db', 'policy', 'agents'],
  /**
   * the life of a message: `accept/`, `dispatch/`, `runner/` (sends dispatches and records their ends), `supervise/` (workflows, sweeper),
   * `input/` (questions to humans), `stream/`, `read/`; the only user of the Temporal client
   */
  messages: ['contracts', 'runtime', 'db', 'usage', 'policy', 'agents', 'sessions'],
  /** the queue of deliveries, their attempts and log: `channels/` (webhook, Slack, email), push notifications */
  deliveries: ['contracts', 'runtime', 'db', 'http', 'messages'],
  /** alert rules, the relay that matches events with them, Slack's buttons */
  alerts: ['contracts', 'runtime', 'db', 'http', 'audit', 'telemetry', 'messages', 'deliveries'],
  /**
   * knowledge bases: `parse/` and `chunk/` (documents into chunks), `threads/` (where they are read), `ingest/` (jobs, sources),
   * `embedding/`, `search/`
   */
  knowledge: ['contracts', 'runtime', 'db', 'http'],
  /** graphs of steps: what comes next, the messages of steps, approvals */
  plans: ['contracts', 'runtime', 'db', 'policy', 'sessions', 'messages'],
  /** requests to people as lists and records, many decisions at once, receipts; the request itself is of `messages/input/` */
  requests: ['contracts', 'runtime', 'db', 'auth', 'messages'],
  /** what a policy that is not stored would have decided about what is on the record */
  backtest: ['contracts', 'runtime', 'db', 'policy', 'messages', 'plans'],
  /** erases messages, sessions and tenants, in portions */
  erasure: ['contracts', 'runtime', 'db', 'agents', 'sessions', 'messages'],
  /** calls of agents' tools and of the platform's */
  tools: [
    'contracts',
    'runtime',
    'db',
    'audit',
    'telemetry',
    'usage',
    'policy',
    'agents',
    'messages',
    'plans',
    'knowledge',
  ],
  /**
   * transport to agents: `server/` (port, handshake), `connection/` (states, resume), `frames/`, `connected/`, `hosted/` (A2A over HTTP),
   * `nodes/`
   */
  mesh: ['contracts', 'runtime', 'db', 'http', 'auth', 'telemetry', 'policy', 'agents', 'messages', 'tools'],
  /** side effects that workflows ask for */
  activities: [
    'contracts',
    'runtime',
    'db',
    'http',
    'agents',
    'sessions',
    'messages',
    'plans',
    'deliveries',
    'knowledge',
  ],
  /** durable workflows, thin over what `messages/` decides; import only Temporal and `contracts/` */
  workflows: ['contracts'],
  /** Fastify: plugins, one route file for each section, A2A JSON-RPC in `send/` */
  api: [
    'contracts',
    'runtime',
    'db',
    'http',
    'audit',
    'auth',
    'telemetry',
    'usage',
    'policy',
    'agents',
    'sessions',
    'messages',
    'plans',
    'requests',
    'backtest',
    'deliveries',
    'alerts',
    'knowledge',
    'tools',
  ],
  /** Postgres, Temporal and the certificate for `npm start` */
  embedded: ['contracts', 'runtime'],
  /** the operator's web page: React, types and pure functions of the contracts; Vite bundles it, so all packages are for development */
  console: ['contracts'],
  /** the `fleet` command */
  cli: ['contracts', 'runtime', 'db', 'audit', 'auth', 'erasure', 'sdk'],
  /**
   * TypeScript SDK: `agent/` (the `Agent` class), `handlers/` and `tools/` (what handlers receive and return), `schema/` (Standard Schema),
   * `connected/` and `hosted/` (the two transports), `client/` and `browser/`, `testing/`, `wire/` (names of members), `adapters/` (frameworks,
   * optional peers of the package)
   */
  sdk: ['contracts'],
  /** example agents, the demo */
  examples: ['sdk', 'contracts'],
  /** the composition root of `start.ts` and `worker.ts` */
  platform: [
    'contracts',
    'runtime',
    'db',
    'http',
    'audit',
    'auth',
    'telemetry',
    'usage',
    'policy',
    'agents',
    'sessions',
    'messages',
    'plans',
    'deliveries',
    'alerts',
    'knowledge',
    'tools',
    'erasure',
    'mesh',
    'activities',
    'api',
    'embedded',
  ],
};
/** Single files and kinds of imports beyond the table. `types`: only `import type`. */
const ALSO = {
  workflows: { types: ['activities', 'messages', 'plans'] },
};
/** Root files that put the parts together: they import anything, nothing imports them. */
const ENTRIES = '^(start|worker)\\.ts$';
const FREE = '^(test|bench|scripts|sdk/adapters/test)/|^[^/]+\\.config\\.ts$';
const TABLED = `^(${Object.keys(LAYERS).join('|')})/`;

const npm = (names) => `(^|/)node_modules/(${names.join('|')})/`;
const folders = (names) => `^(${names.join('|')})/`;

function layerRules([folder, allowed]) {
  const { files = [], types = [] } = ALSO[folder] ?? {};
  const from = { path: `^${folder}/`, pathNot: FREE };
  const mayImport = [folders([folder, ...allowed]), ...files];
  const pathNot = ['node_modules', ...mayImport];
  return [
    {
      name: `${folder}-imports-only-its-layers`,
      comment: `${folder}/ may import ${[folder, ...allowed, ...files].join(', ')}`,
      severity: 'error',
      from,
      to: { pathNot, dependencyTypesNot: ['core', 'type-only'] },
    },
    {
      name: `${folder}-imports-only-its-layers-types`,
      comment: `beyond that, ${folder}/ may \`import type\` from: ${types.join(', ') || 'nothing'}`,
      severity: 'error',
      from,
      to: {
        pathNot: types.length > 0 ? [...pathNot, folders(types)] : pathNot,
        dependencyTypes: ['type-only'],
        dependencyTypesNot: ['core'],
      },
    },
  ];
}

module.exports = {
  forbidden: [
    ...Object.entries(LAYERS).flatMap(layerRules),
    {
      name: 'contracts-need-only-zod',
      comment: 'contracts are pure: zod and nothing else, no Node modules either',
      severity: 'error',
      from: { path: '^contracts/' },
      to: { path: 'node_modules|^[^/]+$', pathNot: npm(['zod']) },
    },
    {
      name: 'workflows-are-deterministic',
      comment: 'a workflow reaches the world through activities: only @temporalio/workflow and common, no Node modules',
      severity: 'error',
      from: { path: '^workflows/' },
      to: {
        path: 'node_modules|^[^/]+$',
        pathNot: npm(['@temporalio/workflow', '@temporalio/common']),
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'temporal-client-stays-in-messages',
      comment: 'messages/ is the only user of the Temporal client; the embedded server and the entries connect it',
      severity: 'error',
      from: { pathNot: [FREE, ENTRIES, '^(messages|embedded)/'] },
      to: { path: npm(['@temporalio/client']) },
    },
    {
      name: 'entries-are-not-imported',
      comment: 'start.ts and worker.ts put the parts together',
      severity: 'error',
      from: { pathNot: FREE },
      to: { path: ENTRIES },
    },
    {
      name: 'tests-are-not-imported',
      comment: 'nothing that ships imports tests, benchmarks or scripts',
      severity: 'error',
      from: { pathNot: FREE },
      to: { path: FREE },
    },
    {
      name: 'every-folder-is-in-the-table',
      comment: 'a new folder needs a line in LAYERS',
      severity: 'error',
      from: { pathNot: [TABLED, FREE, ENTRIES] },
      to: {},
    },
    {
      name: 'no-circular',
      comment: 'two files that need each other, be it for a type, are one file, or three',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-dev-dependencies',
      comment: 'what ships imports only "dependencies"; adapters of the SDK import their framework, an optional peer',
      severity: 'error',
      from: { pathNot: [FREE, '^(sdk/adapters|console)/'] },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'resolvable',
      comment: 'an import leads nowhere',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(dist|sdk/dist|dist\\.tmp|dist\\.old|\\.fleet|coverage)/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'types', 'default'] },
  },
};
