import { useState } from 'react';
import { asCurl } from '../api/call.js';

const SHOWN_MS = 1_500;

/** Copies a text, and says so. */
export function Copy({ text, label, className = 'link' }: { text: string; label: string; className?: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), SHOWN_MS);
  };
  return (
    <button type="button" className={className} onClick={() => void copy()}>
      {copied ? 'Copied' : label}
    </button>
  );
}

/** An id, shortened, which a click copies. */
export function Id({ id }: { id: string }) {
  return (
    <span className="id" title={id}>
      <Copy text={id} label={`${id.slice(0, id.indexOf('_') + 1)}…${id.slice(-6)}`} className="id" />
    </span>
  );
}

/** The call behind an action, for a shell. */
export function CopyCurl({ path, body }: { path: string; body: unknown }) {
  return <Copy text={asCurl(path, body)} label="Copy as curl" />;
}
