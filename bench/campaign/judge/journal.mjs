/** What the agents wrote down, of all their processes. */
import { readFileSync } from 'node:fs';

const add = (map, key, value = 1) => map.set(key, (map.get(key) ?? 0) + value);

export class Journal {
  /** How often each dispatch was started, by message id and dispatch id. */
  started = new Map();
  /** Calls that a tool got, by the id of the message for which it was called. */
  toolCalls = new Map();
  /** When each of them came, by tenant id, in milliseconds since 1970. */
  toolCallTimes = new Map();
  /** Calls that failed for the agent that made them, by message id. */
  toolFailures = new Map();
  /** Connections of agents, in the order of each process: `{ node, meshId, resumed, atMs }`. */
  connections = [];

  /** @param {string[]} files some of which may not be there yet */
  static read(files) {
    const journal = new Journal();
    for (const file of files)
      for (const line of readFileSync(file, 'utf8').split('\n').filter(isWhole)) journal.#take(JSON.parse(line));
    return journal;
  }

  /** Work of which the record knows no message. */
  orphans(known) {
    return [...this.started]
      .filter(([message]) => !known.has(message))
      .flatMap(([message, dispatches]) => [...dispatches.keys()].map((dispatch) => ({ message, dispatch })));
  }

  #take({ fact, ...entry }) {
    const { message, dispatch } = entry;
    if (fact === 'started') {
      const dispatches = this.started.get(message) ?? new Map();
      add(dispatches, dispatch);
      this.started.set(message, dispatches);
    } else if (fact === 'tool') {
      add(this.toolCalls, message);
      this.toolCallTimes.set(entry.tenant, [...(this.toolCallTimes.get(entry.tenant) ?? []), entry.atMs]);
    } else if (fact === 'tool failed') {
      this.toolFailures.set(message, [...(this.toolFailures.get(message) ?? []), entry]);
    } else if (fact === 'connected') this.connections.push(entry);
  }
}

/** A kill may leave half a line, of a fact that the agent has not acted on. */
const isWhole = (line) => line.endsWith('}');
