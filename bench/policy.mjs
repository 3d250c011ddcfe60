/**
 * What a decision costs (docs/performance.md): 1,000 policies of one scope, none of which applies, so that none ends the decision; and what
 * each guard costs per KiB.
 *
 *     npm run bench:policy -- [--policies N] [--decisions N] [--send]
 *
 * With `--send`, what a hundred policies cost `/send`.
 */
import { parseArgs } from 'node:util';
import { compilePolicy, policyOrder } from '../dist/policy/compiled-policy.js';
import { decideBy } from '../dist/policy/decision.js';
import { Facts } from '../dist/policy/matching/facts.js';
import { PolicySet } from '../dist/policy/policy-set.js';
import { quantile } from './harness/measure.mjs';
import { machineLine, markdownTable } from './harness/report.mjs';
import { reportGuards } from './policy/guards.mjs';
import { reportSend } from './policy/send.mjs';

const GOAL_US = 200;
const WARM_UP_SHARE = 0.2;

const { values: given } = parseArgs({
  options: {
    policies: { type: 'string', default: '1000' },
    decisions: { type: 'string', default: '2000' },
    send: { type: 'boolean', default: false },
  },
});
const policies = Number(given.policies);
const decisions = Number(given.decisions);
const print = (text) => process.stdout.write(`${text}\n`);

/** One policy for each agent type: none is for that of `REQUEST`. */
const BY_TYPE = (n) => ({ agent_types: [`type-${n}`], tools: ['files.*'] });
/** Conditions in turn, as tenants write them. None holds for `REQUEST`. */
const MATCHES = [
  (n) => ({ tools: [`tool-${n}`] }),
  (n) => ({ tools: [`service-${n}.*`], agent_types: ['writer'] }),
  (n) => ({ agent_types: [`type-${n}`, 'other-*'] }),
  (n) => ({ tools: ['files.*'], paths: [`/srv/tenant-${n}/**`] }),
  (n) => ({ tools: ['files.*'], hosts: [`*.host-${n}.example`] }),
  (n) => ({ tools: ['files.*'], arguments: [{ path: 'amount', op: 'gt', value: 1_000 + n }] }),
  (n) => ({ tools: ['files.*'], arguments: [{ path: 'to.name', op: 'eq', value: `user-${n}` }] }),
  (n) => ({ tools: ['files.*'], skills: [`skill-${n}`], not: { agent_types: ['coder'] } }),
];
/** Those of one tool, which differ in paths, hosts and arguments alone. */
const OF_ONE_TOOL = MATCHES.slice(3, 7);
const argument = (path, op, value) => ({ tools: ['files.*'], arguments: [{ path, op, value }] });
/** Those that compare arguments otherwise than by `eq` and `in`. */
const COMPARISONS = [
  (n) => argument('amount', 'gt', 1_000 + n),
  (n) => argument('amount', 'lt', 10 - n),
  (n) => argument('text', 'contains', `order ${n} is`),
  (n) => argument('to.name', 'matches', `^(user|group)-${n}$`),
];
const REQUEST = {
  scope: 'tool',
  action: 'call',
  tool: 'files.read',
  arguments: {
    path: '/home/one/report.md',
    url: 'https://www.example.com/a',
    amount: 12,
    to: { name: 'somebody' },
    text: 'Order 4711 left on Tuesday, and the customer asks where it is. '.repeat(8),
  },
  agent: { agent_type: 'writer', instance_id: 'writer-1' },
  session: { session_id: 'ses_1' },
  token: { sub: 'cred_1', credential_id: 'cred_1', scopes: ['read'], agent_type: 'writer' },
};
const EXPRESSIONS = {
  'a comparison': (n) => `request.arguments.amount > ${1_000 + n}`,
  'three conditions': (n) =>
    `request.tool.startsWith("files.") && request.agent.agent_type == "writer" && request.arguments.to.name == "user-${n}"`,
};

function compiled(count, partsOf) {
  const rows = Array.from({ length: count }, (_, n) => ({
    tenant_id: 'ten_1',
    policy_id: `pol_${String(n).padStart(6, '0')}`,
    scope: 'tool',
    name: `policy ${n}`,
    decision: ['deny', 'require_approval', 'allow', 'audit'][n % 4],
    reason: '',
    approvers: [],
    evaluator_secret: null,
    priority: n % 10,
    ...partsOf(n),
  }));
  return new PolicySet(rows.map((row) => compilePolicy(row, {})).sort(policyOrder));
}

/** Microseconds of single decisions. Each must be given at once and allow. */
function measure(set) {
  const times = [];
  for (let round = 0; round < decisions; round += 1) {
    const from = performance.now();
    const verdict = decideBy(set, new Facts('ten_1', REQUEST));
    times.push((performance.now() - from) * 1_000);
    if (verdict instanceof Promise || verdict.decision !== 'allow')
      throw new Error(`not allowed at once: ${JSON.stringify(verdict)}`);
  }
  return times.slice(Math.floor(decisions * WARM_UP_SHARE));
}

const figures = (times) => [quantile(times, 0.5), quantile(times, 0.95)].map((us) => us.toFixed(1));

const inTurn = (matches) => (n) => matches[n % matches.length](n);
const withoutEvaluators = Object.entries({
  'one for each agent type': BY_TYPE,
  'of all kinds': inTurn(MATCHES),
  'of one tool, by path, host and argument': inTurn(OF_ONE_TOOL),
  'of one tool, by gt, lt, contains and matches': inTurn(COMPARISONS),
}).map(([name, matchOf]) => ({
  name: `${policies} policies without evaluators, ${name}`,
  times: measure(compiled(policies, (n) => ({ match: matchOf(n), evaluator: {} }))),
}));
const cel = Object.entries(EXPRESSIONS).map(([name, expressionOf]) => {
  const count = Math.min(50, policies);
  const times = measure(
    compiled(count, (n) => ({
      match: {},
      decision: 'deny',
      evaluator: { type: 'cel', expression: expressionOf(n), on_error: 'deny' },
    })),
  );
  return [`one policy more with CEL, ${name}`, ...figures(times.map((us) => us / count))];
});

print(machineLine());
print('');
print(
  markdownTable(
    ['µs a decision', 'p50', 'p95'],
    [...withoutEvaluators.map(({ name, times }) => [name, ...figures(times)]), ...cel],
  ),
);
print('');
reportGuards();
const p50 = Math.max(...withoutEvaluators.map(({ times }) => quantile(times, 0.5)));
print(`\n${p50 < GOAL_US ? 'ok' : 'MISSED'}: ${p50.toFixed(1)} µs, goal below ${GOAL_US} µs`);
const sendMet = !given.send || (await reportSend());
process.exitCode = (p50 < GOAL_US || policies > 1_000) && sendMet ? 0 : 1;
