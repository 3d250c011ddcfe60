import { Writable } from 'node:stream';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { fixture, useMesh } from './use-mesh.js';

useMesh('a', 'b');

it('errors that agents report are logged once in a while, and hardly in their words', async () => {
  const lines: Record<string, unknown>[] = [];
  const written = new Writable({
    write(line: Buffer, _encoding, done) {
      lines.push(JSON.parse(line.toString()) as Record<string, unknown>);
      done();
    },
  });
  const node = await fixture.node({ log: pino({ level: 'debug' }, written) });
  for (const instance of ['a', 'b']) {
    const { agent } = await node.join(instance);
    for (let n = 0; n < 20; n += 1) agent.send('error', { code: `OWN_${n}`, message: 'x'.repeat(4_096) });
    const ping = agent.send('ping', {});
    await agent.next((frame) => frame.type === 'pong' && frame.in_reply_to === ping);
  }
  const about = lines.filter((line) => line.code === 'OWN_0');
  expect(about).toMatchObject([
    { level: 30, instance_id: 'a' },
    { level: 20, instance_id: 'a', message: 'x'.repeat(200) },
    { level: 30, instance_id: 'b' },
    { level: 20, instance_id: 'b', message: 'x'.repeat(200) },
  ]);
  expect(about[0]).not.toHaveProperty('message');
  expect(lines.filter((line) => /^OWN_/.test(String(line.code)))).toHaveLength(about.length);
});
