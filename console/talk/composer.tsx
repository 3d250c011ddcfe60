import { type RefObject, useState } from 'react';
import type { Part } from '../../contracts/a2a/parts.js';
import { LIMITS } from '../../contracts/limits.js';
import { Icon } from '../parts/icon.js';

type FilePart = Extract<Part, { kind: 'file' }>;

/** Base64 is a third longer, and the text needs room as well. */
const FILES_BYTES_MAX = Math.floor(LIMITS.messagePartsBytes * 0.7);

function fileOf(file: File): Promise<FilePart> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(reader.error);
    reader.onload = () => {
      const bytes = String(reader.result).replace(/^[^,]*,/, '');
      const mimeType = file.type || 'application/octet-stream';
      resolve({ kind: 'file', file: { name: file.name, mimeType, bytes } });
    };
    reader.readAsDataURL(file);
  });
}

/** Where a message is written. Enter sends it, Shift and Enter begins a line. */
export function Composer(props: {
  text: string;
  setText: (text: string) => void;
  field: RefObject<HTMLTextAreaElement | null>;
  placeholder: string;
  send: (parts: Part[]) => void;
}) {
  const { text, setText, field, placeholder, send } = props;
  const [files, setFiles] = useState<File[]>([]);
  const [problem, setProblem] = useState('');

  const submit = async () => {
    const said = text.trim();
    if (said === '' && files.length === 0) return;
    const size = files.reduce((sum, file) => sum + file.size, 0);
    if (size > FILES_BYTES_MAX) {
      setProblem(`A message takes ${Math.floor(FILES_BYTES_MAX / 1_000)} kB of files. Give larger ones as a link.`);
      return;
    }
    const attached = await Promise.all(files.map(fileOf));
    send([...(said === '' ? [] : [{ kind: 'text' as const, text: said }]), ...attached]);
    setFiles([]);
    setProblem('');
  };
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {files.length > 0 && (
        <ul className="chips">
          {files.map((file) => (
            <li key={`${file.name} ${file.size} ${file.lastModified}`}>
              {file.name}
              <button
                type="button"
                aria-label={`Remove ${file.name}`}
                onClick={() => setFiles((all) => all.filter((one) => one !== file))}
              >
                <Icon name="cross" />
              </button>
            </li>
          ))}
        </ul>
      )}
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      <div className="box">
        <textarea
          ref={field}
          aria-label="Message"
          rows={1}
          placeholder={placeholder}
          value={text}
          onChange={({ target }) => setText(target.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
            event.preventDefault();
            void submit();
          }}
        />
        <label className="attach" title="Attach files">
          <Icon name="clip" />
          <span className="hidden">Attach files</span>
          <input
            type="file"
            multiple
            className="hidden"
            onChange={({ target }) => {
              setFiles((all) => [...all, ...(target.files ?? [])]);
              target.value = '';
            }}
          />
        </label>
        <button type="submit" className="send" disabled={text.trim() === '' && files.length === 0}>
          Send
        </button>
      </div>
    </form>
  );
}
