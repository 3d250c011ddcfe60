import { describe, expect, it, onTestFinished } from 'vitest';
import type { BusEvent, BusItem, ChunkBus } from '../../../messages/stream/bus.js';
import { until } from '../../setup/until.js';

const TENANT = 'ten_1';
const MESSAGE = 'msg_1';
const CHANGED: BusEvent = { kind: 'changed' };
const GAP = { kind: 'gap' };
const CAUGHT_UP = { kind: 'caught_up' };

const text = (value: string): BusEvent => ({ kind: 'status_text', text: value });
const chunk = (value: string): BusEvent => ({
  kind: 'artifact',
  artifact: { artifactId: 'a', parts: [{ kind: 'text', text: value }] },
  append: true,
  last_chunk: false,
});

function collect(bus: ChunkBus, options: { message?: string; tenant?: string; after?: number } = {}) {
  const seen: BusItem[] = [];
  const end = bus.subscribe(options.tenant ?? TENANT, options.message ?? MESSAGE, options.after ?? 0, (placed) =>
    seen.push(placed),
  );
  return { seen, end, events: () => seen.map(({ event }) => event), cursors: () => seen.map(({ cursor }) => cursor) };
}

/** What a follower from the start has seen once everything published so far has arrived. */
async function settled(bus: ChunkBus): Promise<BusItem[]> {
  bus.publish(TENANT, MESSAGE, text('marker'));
  const all = collect(bus);
  await until(() => all.seen.some(({ event }) => event.kind === 'status_text' && event.text === 'marker'));
  all.end();
  return all.seen.slice(0, -1);
}

/** A follower from the start, once it has seen so many events. */
async function followed(bus: ChunkBus, count: number) {
  const follower = collect(bus);
  await until(() => follower.seen.length === count);
  return follower;
}

/** What every bus does, as tests of the one that `open` gives. */
export function describeBus(name: string, open: () => Promise<ChunkBus>): void {
  describe(`${name} bus`, () => {
    async function bus(): Promise<ChunkBus> {
      const opened = await open();
      onTestFinished(() => opened.close());
      return opened;
    }

    it('brings events to a live follower in order, with cursors that rise by one', async () => {
      const opened = await bus();
      const follower = collect(opened);
      const sent = Array.from({ length: 50 }, (_, n) => chunk(`${n}`));
      for (const event of sent) opened.publish(TENANT, MESSAGE, event);
      await until(() => follower.seen.length === 50);
      expect(follower.events()).toEqual(sent);
      const [first = 0] = follower.cursors();
      expect(follower.cursors()).toEqual(sent.map((_, n) => first + n));
    });

    it('replays what came before, then follows, without a loss or a repeat between the two', async () => {
      const opened = await bus();
      const sent = Array.from({ length: 200 }, (_, n) => text(`${n}`));
      for (const event of sent.slice(0, 100)) opened.publish(TENANT, MESSAGE, event);
      const follower = collect(opened);
      for (const event of sent.slice(100)) opened.publish(TENANT, MESSAGE, event);
      await until(() => follower.seen.length >= 200);
      expect(follower.events()).toEqual(sent);
    });

    it('resumes after a cursor', async () => {
      const opened = await bus();
      for (const word of ['one', 'two', 'three']) opened.publish(TENANT, MESSAGE, text(word));
      const [, second] = await settled(opened);
      const follower = collect(opened, { after: second?.cursor ?? 0 });
      await until(() => follower.seen.length === 3);
      expect(follower.events()).toEqual([text('three'), text('marker'), CAUGHT_UP]);
    });

    it('has nothing to tell to who resumes after the newest event, and says so', async () => {
      const opened = await bus();
      opened.publish(TENANT, MESSAGE, text('one'));
      const seen = (await followed(opened, 1)).seen;
      const follower = collect(opened, { after: seen[0]?.cursor ?? 0 });
      await until(() => follower.seen.length === 1);
      opened.publish(TENANT, MESSAGE, text('two'));
      await until(() => follower.seen.length === 2);
      expect(follower.events()).toEqual([CAUGHT_UP, text('two')]);
    });

    it('tells who resumes behind what is kept of the gap, and everything that is kept', async () => {
      const opened = await bus();
      opened.publish(TENANT, MESSAGE, text('first'));
      const { seen } = await followed(opened, 1);
      for (let n = 0; n < 300; n += 1) opened.publish(TENANT, MESSAGE, text(`${n}`));
      const kept = await settled(opened);
      const follower = collect(opened, { after: seen[0]?.cursor ?? 0 });
      await until(() => follower.events().some((event) => event.kind === 'caught_up'));
      expect(follower.events().slice(0, -2)).toEqual([GAP, ...kept.map(({ event }) => event)]);
      const again = collect(opened, { after: follower.cursors()[0] ?? 0 });
      await until(() => again.events().some((event) => event.kind === 'caught_up'));
      expect(again.events()).toEqual(follower.events().slice(1));
    });

    it('tells who resumes after a cursor that never was of a gap', async () => {
      const opened = await bus();
      opened.publish(TENANT, MESSAGE, text('one'));
      for (const after of [1, Date.now() + 1_000_000_000]) {
        const follower = collect(opened, { after });
        await until(() => follower.seen.length === 3);
        expect(follower.events()).toEqual([GAP, text('one'), CAUGHT_UP]);
      }
      const nothing = collect(opened, { message: 'msg_2', after: 7 });
      await until(() => nothing.seen.length === 2);
      expect(nothing.events()).toEqual([GAP, CAUGHT_UP]);
    });

    it('begins after what is recorded, and still resumes within it', async () => {
      const opened = await bus();
      const recorded: BusEvent = { kind: 'changed', recorded: true };
      for (const event of [chunk('a'), chunk('b'), recorded, chunk('c')]) opened.publish(TENANT, MESSAGE, event);
      const { seen } = await followed(opened, 2);
      expect(seen.map(({ event }) => event)).toEqual([recorded, chunk('c')]);
      const follower = collect(opened, { after: (seen[0]?.cursor ?? 0) - 2 });
      await until(() => follower.seen.length === 4);
      expect(follower.events()).toEqual([chunk('b'), recorded, chunk('c'), CAUGHT_UP]);
    });

    it('keeps messages and tenants apart', async () => {
      const opened = await bus();
      const other = collect(opened, { message: 'msg_2' });
      const foreign = collect(opened, { tenant: 'ten_2' });
      opened.publish(TENANT, MESSAGE, text('mine'));
      expect((await settled(opened)).map(({ event }) => event)).toEqual([text('mine')]);
      opened.publish(TENANT, 'msg_2', text('other'));
      opened.publish('ten_2', MESSAGE, text('foreign'));
      await until(() => other.seen.length > 0 && foreign.seen.length > 0);
      expect([other.events(), foreign.events()]).toEqual([[text('other')], [text('foreign')]]);
    });

    it('tells every follower of a message', async () => {
      const opened = await bus();
      const followers = [collect(opened), collect(opened), collect(opened)];
      opened.publish(TENANT, MESSAGE, CHANGED);
      await until(() => followers.every((follower) => follower.seen.length === 1));
      expect(followers.map((follower) => follower.events())).toEqual([[CHANGED], [CHANGED], [CHANGED]]);
    });

    it('replays the newest change notice only', async () => {
      const opened = await bus();
      for (const event of [CHANGED, chunk('a'), CHANGED, chunk('b'), CHANGED]) opened.publish(TENANT, MESSAGE, event);
      expect((await settled(opened)).map(({ event }) => event)).toEqual([chunk('a'), chunk('b'), CHANGED]);
    });

    it('drops the oldest beyond 256 events, which shows as a gap', async () => {
      const opened = await bus();
      opened.publish(TENANT, MESSAGE, text('first'));
      const [first] = await settled(opened);
      for (let n = 0; n < 300; n += 1) opened.publish(TENANT, MESSAGE, text(`${n}`));
      const kept = await settled(opened);
      expect(kept.length).toBe(255);
      expect(kept.at(-1)?.event).toEqual(text('299'));
      expect(kept[0]?.cursor).toBeGreaterThan((first?.cursor ?? 0) + 1);
    });

    it('drops the oldest beyond 1 MiB and keeps the newest, whatever its size', async () => {
      const opened = await bus();
      for (const letter of ['a', 'b', 'c', 'd', 'e']) opened.publish(TENANT, MESSAGE, text(letter.repeat(300 * 1024)));
      const kept = (await settled(opened)).map(({ event }) => (event.kind === 'status_text' ? event.text[0] : ''));
      expect(kept).toEqual(['c', 'd', 'e']);
      opened.publish(TENANT, MESSAGE, text('f'.repeat(1536 * 1024)));
      const newest = collect(opened);
      await until(() => newest.seen.some(({ event }) => event.kind === 'status_text' && event.text.startsWith('f')));
    });

    it('goes on when a listener throws', async () => {
      const opened = await bus();
      opened.subscribe(TENANT, MESSAGE, 0, () => {
        throw new Error('broken listener');
      });
      const follower = collect(opened);
      opened.publish(TENANT, MESSAGE, text('a'));
      opened.publish(TENANT, MESSAGE, text('b'));
      await until(() => follower.seen.length === 2);
      expect(follower.events()).toEqual([text('a'), text('b')]);
    });

    it('is silent after the end of a subscription', async () => {
      const opened = await bus();
      const ended = collect(opened);
      const still = collect(opened);
      opened.publish(TENANT, MESSAGE, text('a'));
      await until(() => ended.seen.length === 1 && still.seen.length === 1);
      ended.end();
      ended.end();
      opened.publish(TENANT, MESSAGE, text('b'));
      await until(() => still.seen.length === 2);
      expect(ended.events()).toEqual([text('a')]);
    });

    it('follows again on a message that was left', async () => {
      const opened = await bus();
      collect(opened).end();
      const again = collect(opened);
      opened.publish(TENANT, MESSAGE, text('a'));
      await until(() => again.seen.length === 1);
      expect(again.events()).toEqual([text('a')]);
    });

    it('forgets messages, or all of a tenant, and keeps the others', async () => {
      const opened = await bus();
      const all = [
        { tenant: TENANT, message: MESSAGE },
        { tenant: TENANT, message: 'msg_2' },
        { tenant: 'ten_2', message: MESSAGE },
      ];
      for (const { tenant, message } of all) opened.publish(tenant, message, text(`${tenant} ${message}`));
      /** What a follower of each still gets. A marker ends the wait. */
      const left = async () => {
        const followers = all.map((of) => collect(opened, of));
        for (const { tenant, message } of all) opened.publish(tenant, message, text('marker'));
        await until(() => followers.every(({ seen }) => seen.some(({ event }) => isText(event, 'marker'))));
        for (const { end } of followers) end();
        return followers.map(({ seen }, at) =>
          seen.some(({ event }) => isText(event, `${all[at]?.tenant} ${all[at]?.message}`)),
        );
      };
      const isText = (event: BusItem['event'], value: string) => event.kind === 'status_text' && event.text === value;
      const forget = async (messageIds: string[] | null) =>
        opened.forget(TENANT, messageIds, await opened.keysOf(TENANT, messageIds));
      await forget([MESSAGE]);
      expect(await left()).toEqual([false, true, true]);
      await forget(null);
      expect(await left()).toEqual([false, false, true]);
    });
  });
}
