import { describe, expect, it, onTestFinished } from 'vitest';
import type { BusEvent, BusItem, ChunkBus } from '../../../messages/stream/bus.js';
import { until } from '../../setup/until.js';

const TENANT = 'ten_1';
const MESSAGE = 'msg_1';
const CHANGED: BusEvent = { kind: 'changed' };
const RECORDED: BusEvent = { kind: 'changed', recorded: true };
const GAP = { kind: 'gap' };
const CAUGHT_UP = { kind: 'caught_up' };

const text = (value: string): BusEvent => ({ kind: 'status_text', text: value });
const texts = (count: number): BusEvent[] => Array.from({ length: count }, (_, n) => text(`${n}`));
const chunk = (value: string): BusEvent => ({
  kind: 'artifact',
  artifact: { artifactId: 'a', parts: [{ kind: 'text', text: value }] },
  append: true,
  last_chunk: false,
});

interface Following {
  message?: string;
  tenant?: string;
  after?: number;
}

/** A message of a tenant on a bus, as publishers and followers see it. */
export function onBus(bus: ChunkBus) {
  /** A follower of the message, where nothing else is said from its start. */
  function follow({ message = MESSAGE, tenant = TENANT, after = 0 }: Following = {}) {
    const seen: BusItem[] = [];
    const end = bus.subscribe(tenant, message, after, (placed) => seen.push(placed));
    const events = () => seen.map(({ event }) => event);
    return {
      ...{ seen, end, events, cursors: () => seen.map(({ cursor }) => cursor) },
      /** What it was told, once it is so many things. */
      first: async (count: number) => {
        await until(() => seen.length >= count, { what: `${count} events` });
        return events();
      },
      has: (event: BusEvent) => until(() => events().some((one) => JSON.stringify(one) === JSON.stringify(event))),
    };
  }
  const publish = (...events: BusEvent[]) => {
    for (const event of events) bus.publish(TENANT, MESSAGE, event);
  };
  return {
    ...{ bus, follow, publish, say: (...said: string[]) => publish(...said.map(text)) },
    /** What a follower from the start has seen once everything published so far has arrived. */
    settled: async (): Promise<BusItem[]> => {
      publish(text('marker'));
      const all = follow();
      await all.has(text('marker'));
      all.end();
      return all.seen.slice(0, -1);
    },
  };
}

/** What every bus does, as tests of the one that `open` gives. */
export function describeBus(name: string, open: () => Promise<ChunkBus>): void {
  describe(`${name} bus`, () => {
    async function opened() {
      const bus = await open();
      onTestFinished(() => bus.close());
      return onBus(bus);
    }

    it('brings events to a live follower in order, with cursors that rise by one', async () => {
      const { follow, publish } = await opened();
      const follower = follow();
      const sent = texts(50);
      publish(...sent);
      expect(await follower.first(50)).toEqual(sent);
      const [first = 0] = follower.cursors();
      expect(follower.cursors()).toEqual(sent.map((_, n) => first + n));
    });

    it('replays what came before, then follows, without a loss or a repeat between the two', async () => {
      const { follow, publish } = await opened();
      const sent = texts(200);
      publish(...sent.slice(0, 100));
      const follower = follow();
      publish(...sent.slice(100));
      expect(await follower.first(200)).toEqual(sent);
    });

    it('resumes after a cursor', async () => {
      const { follow, say, settled } = await opened();
      say('one', 'two', 'three');
      const [, second] = await settled();
      const follower = follow({ after: second?.cursor });
      expect(await follower.first(3)).toEqual([text('three'), text('marker'), CAUGHT_UP]);
    });

    it('has nothing to tell to who resumes after the newest event, and says so', async () => {
      const { follow, say } = await opened();
      say('one');
      const before = follow();
      await before.first(1);
      const follower = follow({ after: before.cursors()[0] });
      await follower.first(1);
      say('two');
      expect(await follower.first(2)).toEqual([CAUGHT_UP, text('two')]);
    });

    it('tells who resumes behind what is kept of the gap, and everything that is kept', async () => {
      const { follow, publish, say, settled } = await opened();
      say('first');
      const before = follow();
      await before.first(1);
      publish(...texts(300));
      const kept = await settled();
      const follower = follow({ after: before.cursors()[0] });
      await follower.has(CAUGHT_UP as BusEvent);
      expect(follower.events().slice(0, -2)).toEqual([GAP, ...kept.map(({ event }) => event)]);
      const again = follow({ after: follower.cursors()[0] });
      await again.has(CAUGHT_UP as BusEvent);
      expect(again.events()).toEqual(follower.events().slice(1));
    });

    it('tells who resumes after a cursor that never was of a gap', async () => {
      const { follow, say } = await opened();
      say('one');
      for (const after of [1, Date.now() + 1_000_000_000])
        expect(await follow({ after }).first(3)).toEqual([GAP, text('one'), CAUGHT_UP]);
      expect(await follow({ message: 'msg_2', after: 7 }).first(2)).toEqual([GAP, CAUGHT_UP]);
    });

    it('begins after what is recorded, and still resumes within it', async () => {
      const { follow, publish } = await opened();
      publish(chunk('a'), chunk('b'), RECORDED, chunk('c'));
      const begun = follow();
      expect(await begun.first(2)).toEqual([RECORDED, chunk('c')]);
      const follower = follow({ after: (begun.cursors()[0] ?? 0) - 2 });
      expect(await follower.first(4)).toEqual([chunk('b'), RECORDED, chunk('c'), CAUGHT_UP]);
    });

    it('keeps messages and tenants apart', async () => {
      const { bus, follow, say, settled } = await opened();
      const [other, foreign] = [follow({ message: 'msg_2' }), follow({ tenant: 'ten_2' })];
      say('mine');
      expect((await settled()).map(({ event }) => event)).toEqual([text('mine')]);
      bus.publish(TENANT, 'msg_2', text('other'));
      bus.publish('ten_2', MESSAGE, text('foreign'));
      expect([await other.first(1), await foreign.first(1)]).toEqual([[text('other')], [text('foreign')]]);
    });

    it('tells every follower of a message, also when the listener of one throws', async () => {
      const { bus, follow, publish } = await opened();
      bus.subscribe(TENANT, MESSAGE, 0, () => {
        throw new Error('broken listener');
      });
      const followers = [follow(), follow(), follow()];
      publish(CHANGED, text('a'));
      for (const follower of followers) expect(await follower.first(2)).toEqual([CHANGED, text('a')]);
    });

    it('replays the newest change notice only', async () => {
      const { publish, settled } = await opened();
      publish(CHANGED, chunk('a'), CHANGED, chunk('b'), CHANGED);
      expect((await settled()).map(({ event }) => event)).toEqual([chunk('a'), chunk('b'), CHANGED]);
    });

    it('drops the oldest beyond 256 events, which shows as a gap', async () => {
      const { publish, say, settled } = await opened();
      say('first');
      const [first] = await settled();
      publish(...texts(300));
      const kept = await settled();
      expect(kept.length).toBe(255);
      expect(kept.at(-1)?.event).toEqual(text('299'));
      expect(kept[0]?.cursor).toBeGreaterThan((first?.cursor ?? 0) + 1);
    });

    it('drops the oldest beyond 1 MiB and keeps the newest, whatever its size', async () => {
      const { follow, say, settled } = await opened();
      say(...['a', 'b', 'c', 'd', 'e'].map((letter) => letter.repeat(300 * 1024)));
      const kept = (await settled()).map(({ event }) => (event.kind === 'status_text' ? event.text[0] : ''));
      expect(kept).toEqual(['c', 'd', 'e']);
      const newest = 'f'.repeat(1536 * 1024);
      say(newest);
      await follow().has(text(newest));
    });

    it('is silent after the end of a subscription', async () => {
      const { follow, say } = await opened();
      const [ended, still] = [follow(), follow()];
      say('a');
      await ended.first(1);
      await still.first(1);
      ended.end();
      ended.end();
      say('b');
      await still.first(2);
      expect(ended.events()).toEqual([text('a')]);
    });

    it('follows again on a message that was left', async () => {
      const { follow, say } = await opened();
      follow().end();
      const again = follow();
      say('a');
      expect(await again.first(1)).toEqual([text('a')]);
    });

    it('forgets messages, or all of a tenant, and keeps the others', async () => {
      const { bus, follow } = await opened();
      const all = [
        { tenant: TENANT, message: MESSAGE },
        { tenant: TENANT, message: 'msg_2' },
        { tenant: 'ten_2', message: MESSAGE },
      ];
      for (const { tenant, message } of all) bus.publish(tenant, message, text('said'));
      /** Whether followers of each still get it. A marker ends the wait. */
      const left = async () => {
        const followers = all.map((of) => follow(of));
        for (const { tenant, message } of all) bus.publish(tenant, message, text('marker'));
        for (const follower of followers) await follower.has(text('marker'));
        for (const { end } of followers) end();
        return followers.map(({ events }) => JSON.stringify(events()).includes('said'));
      };
      const forget = async (messageIds: string[] | null) =>
        bus.forget(TENANT, messageIds, await bus.keysOf(TENANT, messageIds));
      await forget([MESSAGE]);
      expect(await left()).toEqual([false, true, true]);
      await forget(null);
      expect(await left()).toEqual([false, false, true]);
    });
  });
}
