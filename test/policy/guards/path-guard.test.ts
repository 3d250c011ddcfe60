import { expect, test } from 'vitest';
import { inArguments, only } from './guards-fixture.js';

const anywhere = only({ guard: 'path' });
const rooted = only({ guard: 'path', config: { allowed_roots: ['/workspace', '/data/shared/', 'D:\\projects'] } });

/** Paths that no root can permit, and those outside the roots. */
test.each<[rule: string, given: Record<string, unknown>]>([
  ['traversal', { path: '../secrets.txt' }],
  ['traversal', { path: '/workspace/../etc/passwd' }],
  ['traversal', { path: 'a/b/../../../etc/shadow' }],
  ['traversal', { file: '..\\..\\windows\\system32\\config\\sam' }],
  ['traversal', { path: '%2e%2e/%2e%2e/etc/passwd' }],
  ['traversal', { path: '..%2f..%2fetc%2fpasswd' }],
  ['traversal', { path: '/workspace/%2E%2E%5Cetc' }],
  ['traversal', { path: '/workspace/．．/etc/passwd' }],
  ['traversal', { path: '/workspace/.\u200b./etc/passwd' }],
  ['traversal', { files: ['ok.txt', { outputDir: '/workspace/..' }] }],
  ['traversal', { anything: '../../etc/passwd' }],
  ['traversal', { anything: 'src/../../etc/passwd' }],
  ['traversal', { command: 'cat ../../etc/passwd' }],
  ['traversal', { source: 'docs/%2e%2e/%2e%2e/etc/passwd' }],
  ['traversal', { src: 'a/．．/b' }],
  ['traversal', { src: 'a/.\u200b./b' }],
  ['traversal', { fileName: 'a.txt/%2e%2e' }],
  ['traversal', { option: '--file=../../x' }],
  ['traversal', { operand: 'if=../../dev/sda' }],
  ['traversal', { command: 'tool --file=../../x' }],
  ['traversal', { command: ['cat', '../../etc/passwd'] }],
  ['traversal', { command: 'cat', args: ['%2e%2e/%2e%2e/etc/passwd'] }],
  ['traversal', { [`${'x'.repeat(80)}_path`]: 'a/ (1)/..' }],
  ['too_long', { path: `/workspace/${'./'.repeat(2_100)}../../etc/passwd` }],
  ['too_long', { path: `/workspace/${'a'.repeat(4_100)}.txt` }],
  ['too_long', { x: `/workspace/${'./'.repeat(2_100)}../../etc/passwd` }],
  ['too_long', { x: `/workspace/${'./'.repeat(2_100)}notes.txt` }],
  ['too_long', { command: `cat /workspace/${'./'.repeat(2_100)}../../etc/passwd` }],
  ['encoded', { path: '%252e%252e%252fetc%252fpasswd' }],
  ['encoded', { path: '/workspace/%25%32%65%25%32%65/etc' }],
  ['encoded', { path: '/workspace/%c0%ae%c0%ae/etc/passwd' }],
  ['nul', { path: '/workspace/report.pdf%00.txt' }],
  ['nul', { path: '/workspace/report.pdf\0.txt' }],
  ['outside_roots', { path: '/etc/passwd' }],
  ['outside_roots', { path: '/workspace-of-another/notes.txt' }],
  ['outside_roots', { input: '/proc/self/environ' }],
  ['outside_roots', { path: '  /etc/passwd' }],
  ['outside_roots', { path: '~/.ssh/id_ed25519' }],
  ['outside_roots', { path: '$HOME/.aws/credentials' }],
  ['outside_roots', { path: 'file:///etc/passwd' }],
  ['outside_roots', { path: 'file:/etc/passwd' }],
  ['outside_roots', { path: 'file://another-host/workspace/x' }],
  ['outside_roots', { path: 'C:\\Windows\\win.ini' }],
  ['outside_roots', { path: '\\\\server\\share\\x' }],
  ['outside_roots', { path: '//workspace/x' }],
  ['outside_roots', { command: 'tar czf - /var/lib/postgresql' }],
  ['outside_roots', { path: '/' }],
  ['outside_roots', { file_name: '/etc/passwd' }],
  ['outside_roots', { fileName: '$HOME/x' }],
  ['outside_roots', { option: '--file=/etc/passwd' }],
  ['outside_roots', { command: ['cat', '/etc/passwd'] }],
])('%s: %j is found', (rule, given) => {
  const [finding] = inArguments(rooted, given);
  expect(finding).toMatchObject({ guard: 'path', decision: 'deny', rule });
  expect(finding?.path).toMatch(/^arguments\./);
  if (rule === 'outside_roots') expect(inArguments(anywhere, given)).toEqual([]);
  else expect(inArguments(anywhere, given)).not.toEqual([]);
});

test.each<Record<string, unknown>>([
  { path: '/workspace/report.pdf' },
  { path: '/workspace' },
  { path: '/workspace/' },
  { path: '/workspace//a/./b.txt' },
  { path: '/data/shared/x' },
  { path: 'D:\\projects\\app\\index.ts' },
  { path: 'd:/projects/app' },
  { path: 'src/index.ts' },
  { path: './src/index.ts' },
  { path: 'notes..txt' },
  { path: '..hidden' },
  { path: 'a/...' },
  { path: 'report 100%.pdf' },
  { path: 'résumé.pdf' },
  { path: '/workspace/a%20b.txt' },
  { path: 'file:///workspace/x.txt' },
  { paths: ['a.txt', 'b.txt'] },
  { query: 'What is in /etc/passwd?' },
  { text: 'Wait... what?' },
  { content: "import { a } from '../lib/a.js';\nimport b from './b.js';" },
  { content: '/* see ../README */ export {}' },
  { expression: '1/2 + 3/4' },
  { url: 'https://example.com/a/b' },
  { text: '/help me with this' },
  { text: 'and/or' },
  { command: 'ls /workspace/src' },
  { command: 'npm run build' },
  { date: '2026-11-22', ratio: '16:9', count: 3, nothing: null },
  { profile: 'default' },
  { text: '...' },
  { fileName: 'report.pdf', file_name: '/workspace/a (1).pdf' },
  { image: `/9j/${'4AAQSkZJRgABAQ/A'.repeat(500)}=` },
  { file: `data:image/jpeg;base64,/9j/${'4AAQSkZJRgABAQ/A'.repeat(500)}=` },
  { content: `${'const a = 1; // see ../README\n'.repeat(500)}` },
  { equation: 'a=b/..c' },
  { query: 'limit=10&page=2' },
  { discount: '50%..60%' },
  { text: 'Hm…/… or ‥' },
  { command: 'pip install tool==1.2.3' },
  { command: 'node', args: ['build.js', '--out=dist/app'] },
])('%j is let through', (given) => {
  expect(inArguments(rooted, given)).toEqual([]);
});

test('the root of the file system permits every absolute path', () => {
  const settings = only({ guard: 'path', config: { allowed_roots: ['/'] } });
  expect(inArguments(settings, { path: '/etc/passwd' })).toEqual([]);
  expect(inArguments(settings, { path: '~/x' })).toHaveLength(1);
});
