import type { Result } from 'ioredis';
import { BUFFERED_BYTES_MAX, BUFFERED_EVENTS_MAX } from './message-buffer.js';

/**
 * Appends, keeps and announces in one step; the announcement is the id and the event. Cursors are the sequence parts of the entry ids,
 * counted by the stream itself; the first is the server's clock, so that a stream that expired goes on above the cursors that its readers
 * hold. A cursor is left out where output did not get here, which readers see as a gap. `0-*` needs Redis 7 or Valkey.
 */
const APPEND = `
local id = '0-*'
if redis.call('EXISTS', KEYS[1]) == 0 then
  local now = redis.call('TIME')
  id = '0-' .. now[1] .. string.format('%03d', math.floor(now[2] / 1000))
elseif ARGV[4] == '1' then
  local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1][1]
  id = '0-' .. string.format('%.0f', tonumber(string.sub(last, 3)) + 2)
end
local added = redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[2], id, 'event', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PUBLISH', KEYS[1], added .. ' ' .. ARGV[1])`;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    /** `APPEND`: the channel, then the event, how many are kept, for how many milliseconds, and whether one is missing before it. */
    appendEvent(
      channel: string,
      event: string,
      kept: number,
      retentionMs: number,
      afterHole: 0 | 1,
    ): Result<null, Context>;
  }
}

/** The scripts of a connection that appends. */
export const APPEND_SCRIPTS = { appendEvent: { lua: APPEND, numberOfKeys: 1 } };

/** Keeps few large events or many small ones: all sizes together stay at a few times the byte limit. */
export function retainedWith(bytes: number): number {
  return Math.max(1, Math.min(BUFFERED_EVENTS_MAX, Math.floor(BUFFERED_BYTES_MAX / bytes)));
}
