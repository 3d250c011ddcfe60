import proto, { type temporal } from '@temporalio/proto';

type History = temporal.api.history.v1.History;
const { History } = proto.temporal.api.history.v1;

/** Process and host names have no part in a replay: they stand in `identity` and in the names of sticky queues. */
function anonymous(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? value.replace(/^\d+@[\w.-]+/, 'recorder') : value;
}

/** A history as text for a file, with a line for each event: enumerations by name, bytes in base64. */
export function historyToText(history: temporal.api.history.v1.IHistory): string {
  const plain = History.toObject(History.fromObject(history), { longs: String, enums: String, bytes: String });
  const events = (plain.events as object[]).map((event) => JSON.stringify(event, anonymous));
  return `{"events":[\n${events.join(',\n')}\n]}\n`;
}

export function historyFromText(text: string): History {
  return History.fromObject(JSON.parse(text));
}
