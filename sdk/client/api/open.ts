/** An enumeration of an answer: a newer platform may send values that this release does not know, so handle those you know and the rest. */
export type Open<Known extends string> = Known | (string & {});
