import type { Part } from '../../contracts/a2a/parts.js';
import { saveFile } from './save.js';

type File = Extract<Part, { kind: 'file' }>['file'];

/** Images that browsers draw without running anything. */
const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
/** Larger pictures are saved and not shown. */
const PICTURE_CHARS_MAX = 2_000_000;

function sizeText(bytes: string): string {
  const size = Math.floor((bytes.replace(/=+$/, '').length * 3) / 4);
  return size < 1_000
    ? `${size} bytes`
    : `${(size / 1_000).toLocaleString(undefined, { maximumFractionDigits: 1 })} kB`;
}

/** A file as bytes; as they are where they are no base64. */
function contentOf(bytes: string): BlobPart {
  try {
    return Uint8Array.from(atob(bytes), (char) => char.charCodeAt(0));
  } catch {
    return bytes;
  }
}

/** A file: its name, type and size, a picture as such, and a button that saves it. A file elsewhere is a link. */
export function FileView({ file }: { file: File }) {
  const { name = 'A file', mimeType = 'unknown type', uri, bytes } = file;
  const isPicture = bytes !== undefined && PICTURES.includes(mimeType) && bytes.length <= PICTURE_CHARS_MAX;
  const isPage = uri !== undefined && /^https?:/i.test(uri);
  return (
    <div className="file">
      <div className="line">
        <span className="cut">
          {isPage ? (
            <a href={uri} target="_blank" rel="noopener noreferrer">
              {file.name ?? uri}
            </a>
          ) : (
            (file.name ?? uri ?? name)
          )}{' '}
          <span className="quiet">
            {mimeType}
            {bytes !== undefined && `, ${sizeText(bytes)}`}
          </span>
        </span>
        {bytes !== undefined && (
          <button
            type="button"
            className="link"
            onClick={() => saveFile(name, new Blob([contentOf(bytes)], { type: 'application/octet-stream' }))}
          >
            Save
          </button>
        )}
      </div>
      {isPicture && <img src={`data:${mimeType};base64,${bytes}`} alt={name} />}
    </div>
  );
}
