/** One server-sent event. */
export interface ServerSentEvent {
  /** The last `id` of the stream, from this event or an earlier one; empty without one. */
  id: string;
  /** The event's type; `message` where it names none. */
  event: string;
  data: string;
}

const EVENT_CHARS_MAX = 8 * 1024 * 1024;

/**
 * Reads server-sent events (WHATWG HTML, section 9.2). Comments and unknown fields are skipped; an incomplete event at the
 * end of the stream is dropped.
 * @throws Error for an event of more than 8 Mi characters
 */
export async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  let id = '';
  let event = '';
  let data: string[] = [];
  for await (const line of readLines(body)) {
    if (line === '') {
      if (data.length > 0) yield { id, event: event || 'message', data: data.join('\n') };
      event = '';
      data = [];
      continue;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') data.push(value);
    else if (field === 'event') event = value;
    else if (field === 'id' && !value.includes('\0')) id = value;
  }
}

/** Lines without their terminator: CR LF, LF or CR. */
export async function* readLines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of body) {
    rest += decoder.decode(bytes, { stream: true });
    // A CR at the end may be half of a CR LF: keep it until more bytes arrive.
    const held = rest.endsWith('\r') ? '\r' : '';
    const lines = rest.slice(0, rest.length - held.length).split(/\r\n|\n|\r/);
    rest = (lines.pop() ?? '') + held;
    if (rest.length > EVENT_CHARS_MAX) throw new Error(`an event of more than ${EVENT_CHARS_MAX} characters`);
    yield* lines;
  }
}
