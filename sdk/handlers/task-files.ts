import type { Part } from '../../contracts/a2a/parts.js';

/** A file in a message: its bytes, or the address where they are. The SDK fetches nothing. */
export interface TaskFile {
  readonly name: string | undefined;
  /** The media type that the sender states. */
  readonly mimeType: string | undefined;
  /** Undefined for a file that is sent by its address. */
  readonly bytes: Uint8Array | undefined;
  /** Undefined for a file that is sent whole. */
  readonly uri: string | undefined;
}

/** The files of a message. */
export function filesOf(parts: readonly Part[]): TaskFile[] {
  return parts.flatMap((part) => {
    if (part.kind !== 'file') return [];
    const { name, mimeType, uri, bytes } = part.file;
    return [
      {
        name,
        mimeType,
        uri,
        // Decoded when it is read: most handlers look at one file, or at none.
        get bytes() {
          return bytes === undefined ? undefined : new Uint8Array(Buffer.from(bytes, 'base64'));
        },
      },
    ];
  });
}
