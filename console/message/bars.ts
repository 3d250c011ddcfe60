import type { EventRecord } from '../../contracts/api/telemetry.js';
import { instanceName } from '../fleet/instance-name.js';

/** A span of a message's time. A mark has no length. Times are milliseconds since 1970. */
export interface Bar {
  kind: 'accepted' | 'check' | 'queue' | 'dispatch' | 'question' | 'result';
  label: string;
  startMs: number;
  endMs: number;
  /** It goes on: `endMs` is now. */
  isOpen?: true;
  isBad?: true;
}

const ENDS: Record<string, string> = {
  'message.completed': 'Completed',
  'message.error': 'Failed',
  'message.canceled': 'Canceled',
};

/** A policy or a guard, with the tool that it decided about. */
function checkLabel({ policy_name, guard, tool }: Record<string, unknown>): string {
  const who = guard === undefined ? `Policy ${policy_name}` : `Guard ${guard}`;
  return typeof tool === 'string' ? `${who}: ${tool}` : who;
}

/** The bars of one message, in which what has begun is closed by what follows. */
class Bars {
  readonly all: Bar[] = [];
  /** Dispatches and questions by their ids. */
  readonly #open = new Map<string, Bar>();
  /** Since when nobody has the message. */
  #waitsMs: number | null = null;

  mark(kind: Bar['kind'], label: string, atMs: number, isBad = false): void {
    this.all.push({ kind, label, startMs: atMs, endMs: atMs, ...(isBad && { isBad }) });
  }

  wait(atMs: number): void {
    this.#waitsMs = atMs;
  }

  /** Somebody has the message. */
  endWait(atMs: number, isOpen = false): void {
    if (this.#waitsMs !== null && atMs > this.#waitsMs)
      this.all.push({ kind: 'queue', label: 'Waits', startMs: this.#waitsMs, endMs: atMs, ...(isOpen && { isOpen }) });
    this.#waitsMs = null;
  }

  open(id: string, kind: Bar['kind'], label: string, atMs: number): void {
    if (this.#open.has(id)) return; // A reminder asks about the same request.
    this.endWait(atMs);
    const bar: Bar = { kind, label, startMs: atMs, endMs: atMs };
    this.#open.set(id, bar);
    this.all.push(bar);
  }

  close(id: string, atMs: number, isBad = false): void {
    const bar = this.#open.get(id);
    if (!bar) return;
    this.#open.delete(id);
    bar.endMs = atMs;
    if (isBad) bar.isBad = true;
  }

  /** Closes all that is open. @param isRunning all of it still goes on, at this time */
  closeAll(atMs: number, isRunning: boolean): void {
    this.endWait(atMs, isRunning);
    for (const bar of this.#open.values()) {
      bar.endMs = Math.max(bar.startMs, atMs);
      if (isRunning) bar.isOpen = true;
    }
    this.#open.clear();
  }
}

/** How the time of a message was spent: waits, dispatches and questions as bars, checks and ends as marks. @param events in their order */
export function barsOf(events: readonly EventRecord[], nowMs: number): Bar[] {
  const bars = new Bars();
  let isOver = false;
  let atMs = 0;
  for (const { event_type: type, timestamp, event } of events) {
    atMs = Date.parse(timestamp);
    const { dispatch_id, request_id } = event as Record<string, string>;
    if (type === 'message.received') {
      bars.mark('accepted', 'Accepted', atMs);
      bars.wait(atMs);
    } else if (type === 'dispatch.sent')
      bars.open(`${dispatch_id}`, 'dispatch', `With ${instanceName(`${event.instance_id}`)}`, atMs);
    else if (type === 'dispatch.success') bars.close(`${dispatch_id}`, atMs);
    else if (type === 'dispatch.failed') {
      bars.close(`${dispatch_id}`, atMs, true);
      bars.wait(atMs);
    } else if (type === 'message.input_required') bars.open(`${request_id}`, 'question', 'A person is asked', atMs);
    else if (type === 'message.resolved') {
      bars.close(`${request_id}`, atMs);
      bars.wait(atMs);
    } else if (ENDS[type]) {
      bars.closeAll(atMs, false);
      bars.mark('result', ENDS[type], atMs, type !== 'message.completed');
      isOver = true;
    } else if (/^(policy|guard)\./.test(type)) bars.mark('check', checkLabel(event), atMs, type.endsWith('.denied'));
  }
  if (!isOver) bars.closeAll(Math.max(nowMs, atMs), true);
  return bars.all.sort((one, other) => one.startMs - other.startMs);
}
