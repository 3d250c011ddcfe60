import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { GetPoliciesResponse } from '../../contracts/api/policies/policies.js';
import { type ServedApi, serveApi } from '../api/served-api.js';
import { type NewPolicy, policyFor, tested } from './policy-fixture.js';

let api: ServedApi;
beforeAll(async () => {
  api = await serveApi();
});
afterEach(async () => {
  const { policies } = await api.client.ok('/policies/get_policies', { page_size: 100 }, GetPoliciesResponse);
  for (const { policy_id } of policies) await api.client.post('/policies/delete_policy', { policy_id });
});

type Match = NewPolicy['match'];
type Arguments = Record<string, unknown>;

/** What is decided where a policy denies what matches. */
async function denying(match: Match, given: Arguments): Promise<string> {
  await policyFor(api.client, { scope: 'tool', decision: 'deny', match });
  return (await tested(api.client, { scope: 'tool', action: 'call', tool: 't', arguments: given })).decision;
}

/** What is decided where nothing but what matches is allowed. */
async function allowing(match: Match, given: Arguments): Promise<string> {
  await policyFor(api.client, { scope: 'tool', decision: 'allow', match, priority: 1 });
  return denying({}, given);
}

const padded = `/srv/${'./'.repeat(2_100)}`;

describe('paths', () => {
  const etc: Match = { paths: ['/etc/**'] };
  test.each<[string, Arguments, string]>([
    ['longer than any file system opens', { path: `${padded}../../etc/passwd` }, 'deny'],
    ['longer than that in a member of another name', { x: `${padded}../../etc/passwd` }, 'deny'],
    ['longer than that without `..`', { path: `/${'a'.repeat(4_100)}` }, 'deny'],
    ['encoded, in a member of another name', { source: 'docs/%2e%2e/%2e%2e/etc/passwd' }, 'deny'],
    ['with full-width dots', { src: 'a/．．/b' }, 'deny'],
    ['under the name of a file', { fileName: '%2fetc%2fpasswd' }, 'deny'],
    ['of an option', { args: ['--file=../../x'] }, 'deny'],
    ['of a command', { command: 'cat /etc/passwd' }, 'deny'],
    ['of a command in an array', { command: ['cat', '/etc/passwd'] }, 'deny'],
    ['elsewhere', { path: '/srv/a', command: 'cat /srv/b', image: `/9j/${'4AAQ'.repeat(2_000)}` }, 'allow'],
  ])('a policy that denies paths applies to one %s', async (_what, given, decision) => {
    expect(await denying(etc, given)).toBe(decision);
  });

  test.each<[string, Arguments, string]>([
    ['is too long', { path: `${padded}a` }, 'deny'],
    ['stands in a command', { path: '/srv/a', command: 'cat /etc/passwd' }, 'deny'],
    ['is inside', { path: '/srv/a', command: 'cat /srv/b' }, 'allow'],
  ])('a policy that allows paths decides about one that %s', async (_what, given, decision) => {
    expect(await allowing({ paths: ['/srv/**'] }, given)).toBe(decision);
  });
});

describe('hosts', () => {
  test.each<[string, string, Arguments, string]>([
    ['a command', 'evil.example', { command: 'curl http://evil.example' }, 'deny'],
    ['a command without a scheme', 'evil.example', { command: 'curl evil.example/x' }, 'deny'],
    ['a command with arguments beside it', 'evil.example', { command: 'curl', args: ['evil.example/x'] }, 'deny'],
    ['a sentence', 'evil.example', { text: 'Send it to https://evil.example/x now' }, 'deny'],
    ['a URL without a scheme', 'evil.example', { url: 'evil.example/collect' }, 'deny'],
    ['an address without a scheme', '169.254.*', { url: '169.254.169.254/latest/meta-data' }, 'deny'],
    ['an address with a port', 'localhost', { target: 'localhost:8080/admin' }, 'deny'],
    ['a host with a slash', '10.*', { host: '10.0.0.5/' }, 'deny'],
    ['one behind a long user', 'evil.example', { url: `http://${'a'.repeat(2_100)}@evil.example/` }, 'deny'],
    ['one of several', 'evil.example', { uri: 'mongodb://good.example,evil.example/db' }, 'deny'],
    ['an international name', 'bücher.example', { url: 'https://BÜCHER.example/' }, 'deny'],
    ['its punycode', 'bücher.example', { url: 'https://xn--bcher-kva.example/' }, 'deny'],
    ['a name below it', '*.bücher.example', { url: 'https://www.bücher.example/' }, 'deny'],
    ['an international name with a wildcard', 'bü*.example', { url: 'https://bücher.example/' }, 'deny'],
    ['every punycode', 'xn--*', { url: 'https://bücher.example/' }, 'deny'],
    ['a file name', '*', { text: 'report.final.txt', file: 'a.txt', version: '1.2.3.4' }, 'allow'],
    ['a file of a command', '*', { command: 'cat report.final.txt' }, 'allow'],
  ])('a policy that denies hosts finds the host of %s', async (_what, glob, given, decision) => {
    expect(await denying({ hosts: [glob] }, given)).toBe(decision);
  });

  test.each<[string, Arguments, string]>([
    ['another host in a command', { url: 'http://good.example', command: 'curl http://evil.example' }, 'deny'],
    ['a URL that cannot be read', { url: 'http://good.example', other: 'http://[good.example]/' }, 'deny'],
    ['nothing else', { url: 'http://good.example', command: 'curl good.example/x' }, 'allow'],
  ])('a policy that allows a host decides where the arguments name %s', async (_what, given, decision) => {
    expect(await allowing({ hosts: ['good.example'] }, given)).toBe(decision);
  });
});

describe('values whose order or equality nobody can tell', () => {
  const large: Match = { arguments: [{ path: 'amount', op: 'gt', value: 1_000 }] };
  const small: Match = { arguments: [{ path: 'amount', op: 'lte', value: 1_000 }] };
  test.each<[unknown, string, string]>([
    ['5,000', 'deny', 'deny'],
    ['$5000', 'deny', 'deny'],
    [[5_000], 'deny', 'deny'],
    [{ value: 5_000 }, 'deny', 'deny'],
    [null, 'deny', 'deny'],
    ['', 'deny', 'deny'],
    ['5e3', 'deny', 'deny'],
    ['1000', 'allow', 'allow'],
    [10, 'allow', 'allow'],
  ])('an amount of %j', async (amount, restricted, permitted) => {
    expect(await denying(large, { amount })).toBe(restricted);
    expect(await allowing(small, { amount })).toBe(permitted);
  });

  test.each<[Match, unknown]>([
    [{ arguments: [{ path: 'to', op: 'eq', value: 'x' }] }, ['x']],
    [{ arguments: [{ path: 'to', op: 'in', value: ['x', 'y'] }] }, { a: 'x' }],
    [{ arguments: [{ path: 'to', op: 'contains', value: 'x' }] }, [['x']]],
    [{ arguments: [{ path: 'to', op: 'eq', value: '7' }] }, 7],
  ])('%j is taken to hold for %j where that restricts', async (match, to) => {
    expect(await denying(match, { to })).toBe('deny');
  });

  test('and not to hold where that permits', async () => {
    expect(await allowing({ arguments: [{ path: 'to', op: 'ne', value: 'x' }] }, { to: ['x'] })).toBe('deny');
  });
});
