import { describe, expect, test } from 'vitest';
import type { ArgumentCondition } from '../../contracts/api/policies/policy-match.js';
import { decided, type Given } from './policy-fixture.js';

type Match = Given['match'];
type Arguments = Record<string, unknown>;

/** Whether a policy that denies applies to a call with these arguments. */
const restricts = (match: Match, given: Arguments = {}): boolean =>
  decided([{ decision: 'deny', match }], { arguments: given }).decision === 'deny';
/** Whether such a call is let through where nothing but what matches is allowed. */
const permits = (match: Match, given: Arguments): boolean =>
  decided(
    [
      { decision: 'allow', match },
      { decision: 'deny', priority: 2 },
    ],
    { arguments: given },
  ).decision === 'allow';
const argument = (path: string, op: ArgumentCondition['op'], value: unknown) =>
  ({ arguments: [{ path, op, value }] }) as Match;

test.each<[string, Given[], string]>([
  ['no policy allows', [], 'allow'],
  ['the lowest priority number decides', [{ decision: 'deny', priority: 2 }, { decision: 'allow' }], 'allow'],
  ['at equal priority deny comes first', [{ decision: 'require_approval' }, { decision: 'deny' }], 'deny'],
  ['then require_approval', [{ decision: 'allow' }, { decision: 'require_approval' }], 'require_approval'],
  ['what does not match does not decide', [{ decision: 'deny', match: { tools: ['mail.*'] } }], 'allow'],
  ['an audit goes on', [{ decision: 'audit' }, { decision: 'deny', priority: 2 }], 'deny'],
  ['an audit alone allows', [{ decision: 'audit' }], 'allow'],
])('the order of policies: %s', (_what, policies, decision) => {
  expect(decided(policies).decision).toBe(decision);
});

test.each<[string, Match, boolean]>([
  ['a tool by its name', { tools: ['files.read'] }, true],
  ['a tool by a glob', { tools: ['files.*'] }, true],
  ['another tool', { tools: ['files.rea'] }, false],
  ['one character by ?', { tools: ['files.rea?'] }, true],
  ['all given conditions', { tools: ['files.*'], agent_types: ['coder'] }, false],
  ['the agent type', { agent_types: ['w*r'] }, true],
  ['the instance', { instance_ids: ['writer-*'] }, true],
  ['the skill', { skills: ['translate'] }, true],
  ['the action', { actions: ['call'] }, true],
  ['not', { not: { agent_types: ['coder'] } }, true],
  ['not, which holds', { not: { agent_types: ['writer'] } }, false],
])('a policy matches: %s', (_what, match, applies) => {
  expect(restricts(match)).toBe(applies);
});

// What names a path or a host, and in which notations, is a table of guards/path-guard.test.ts and guards/egress-guard.test.ts.
const padded = `/srv/${'./'.repeat(2_100)}`;

test.each<[string, Arguments, boolean]>([
  ['in a member of its name', { path: '/etc/passwd' }, true],
  ['by a traversal', { path: '/a/../etc' }, true],
  ['encoded', { path: '%2fetc%2fpasswd' }, true],
  ['with doubled slashes and dots', { path: '//etc/./passwd' }, true],
  ['with backslashes', { path: '\\etc\\passwd' }, true],
  ['by a file URL', { url: 'file:///etc/passwd' }, true],
  ['longer than any file system opens', { path: `${padded}../../etc/passwd` }, true],
  ['in a command', { command: 'cat /etc/passwd' }, true],
  ['nowhere', { path: '/srv/a', command: 'cat /srv/b', image: `/9j/${'4AAQ'.repeat(2_000)}` }, false],
])('a policy that denies a folder finds it %s', (_what, given, applies) => {
  expect(restricts({ paths: ['/etc/**'] }, given)).toBe(applies);
});

test('* stays within a segment, and letters are compared in one form', () => {
  expect(restricts({ paths: ['/srv/*/key'] }, { path: '/srv/a/b/key' })).toBe(false);
  expect(restricts({ paths: ['/\u00e9/**'] }, { path: '/e\u0301/a' })).toBe(true);
});

test.each<[string, string, Arguments, boolean]>([
  ['a URL', '*.example.com', { url: 'https://A.Example.com:8443/x' }, true],
  ['a name with a port', 'db.internal', { host: 'db.internal:5432' }, true],
  ['a name with a dot at its end', 'db.internal', { url: 'http://db.internal./' }, true],
  ['a command', 'evil.example', { command: 'curl http://evil.example' }, true],
  ['one behind a long user', 'evil.example', { url: `http://${'a'.repeat(2_100)}@evil.example/` }, true],
  ['an international name', 'bücher.example', { url: 'https://BÜCHER.example/' }, true],
  ['its punycode', 'bücher.example', { url: 'https://xn--bcher-kva.example/' }, true],
  ['a name below it', '*.bücher.example', { url: 'https://www.bücher.example/' }, true],
  ['an international name with a wildcard', 'bü*.example', { url: 'https://bücher.example/' }, true],
  ['every punycode', 'xn--*', { url: 'https://bücher.example/' }, true],
  ['a file name', '*', { text: 'report.final.txt', file: 'a.txt', version: '1.2.3.4' }, false],
])('a policy that denies hosts finds the host of %s', (_what, glob, given, applies) => {
  expect(restricts({ hosts: [glob] }, given)).toBe(applies);
});

describe('arguments', () => {
  test.each<[string, Match, Arguments, boolean]>([
    ['eq', argument('to', 'eq', 'x'), { to: 'x' }, true],
    ['ne, also of what is not there', argument('to', 'ne', 'x'), {}, true],
    ['in', argument('to', 'in', ['x', 'y']), { to: 'y' }, true],
    ['gt', argument('a.amount', 'gt', 1_000), { a: { amount: 5_000 } }, true],
    ['gt of a number as text', argument('amount', 'gt', 1_000), { amount: '5000' }, true],
    ['lte, which does not hold', argument('amount', 'lte', 10), { amount: 11 }, false],
    ['contains in a text', argument('sql', 'contains', 'DROP'), { sql: 'DROP TABLE a' }, true],
    ['contains in a list', argument('to', 'contains', 'x'), { to: ['y', 'x'] }, true],
    ['matches', argument('sql', 'matches', '(?i)^drop\\s'), { sql: 'drop table' }, true],
    ['every member by *', argument('items.*.price', 'gt', 5), { items: [{ price: 1 }, { price: 9 }] }, true],
    ['a list for a text, where that restricts', argument('to', 'eq', 'x'), { to: ['x'] }, true],
    ['an object for one of several texts', argument('to', 'in', ['x', 'y']), { to: { a: 'x' } }, true],
    ['a list in a list', argument('to', 'contains', 'x'), { to: [['x']] }, true],
    ['a number for its text', argument('to', 'eq', '7'), { to: 7 }, true],
  ])('%s', (_what, match, given, applies) => {
    expect(restricts(match, given)).toBe(applies);
  });

  test.each(['5,000', '$5000', [5_000], { value: 5_000 }, null, '', '5e3'])(
    'an amount of %j, whose size nobody can tell, is too large',
    (amount) => {
      expect(restricts(argument('amount', 'gt', 1_000), { amount })).toBe(true);
      expect(permits(argument('amount', 'lte', 1_000), { amount })).toBe(false);
    },
  );

  test.each(['1000', 10])('an amount of %j is known', (amount) => {
    expect(restricts(argument('amount', 'gt', 1_000), { amount })).toBe(false);
    expect(permits(argument('amount', 'lte', 1_000), { amount })).toBe(true);
  });
});

const srv: Match = { paths: ['/srv/**'] };
const good: Match = { hosts: ['good.example'] };

test.each<[string, Match, Arguments, boolean]>([
  ['one path inside', srv, { path: '/srv/a' }, true],
  ['one of two paths outside', srv, { from: '/srv/a', to: '/etc/a' }, false],
  ['no path at all', srv, { a: 1 }, false],
  ['a traversal that comes back', srv, { path: '/srv/../srv/a' }, false],
  ['a path that is too long', srv, { path: `${padded}a` }, false],
  ['another path in a command', srv, { path: '/srv/a', command: 'cat /etc/passwd' }, false],
  ['a command with a path inside', srv, { path: '/srv/a', command: 'cat /srv/b' }, true],
  ['a host beside another', good, { urls: ['http://good.example', 'http://b.example'] }, false],
  ['another host in a command', good, { url: 'http://good.example', command: 'curl http://evil.example' }, false],
  ['a URL that cannot be read', good, { url: 'http://good.example', other: 'http://[good.example]/' }, false],
  ['the same host in a command', good, { url: 'http://good.example', command: 'curl good.example/x' }, true],
  ['one item too dear', argument('items.*', 'lt', 5), { items: [1, 9] }, false],
  ['a list where a text is meant', argument('to', 'ne', 'x'), { to: ['x'] }, false],
])('a policy that allows wants all values to match: %s', (_what, match, given, allowed) => {
  expect(permits(match, given)).toBe(allowed);
});
