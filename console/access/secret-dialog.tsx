import { Copy } from '../parts/copy.js';
import { Dialog } from '../parts/dialog.js';

/** A secret, which is shown this once: it closes by its button only. */
export function SecretDialog({
  issued: { credential, client_secret },
  close,
}: {
  issued: { credential: { name: string; client_id: string }; client_secret: string };
  close: () => void;
}) {
  const lines = `FLEET_CLIENT_ID=${credential.client_id}\nFLEET_CLIENT_SECRET=${client_secret}`;
  return (
    <Dialog label={`The secret of ${credential.name}`}>
      <h2>The secret of {credential.name}</h2>
      <p>Copy it now: the platform keeps no copy, and it is not shown again.</p>
      <pre className="code secret">{lines}</pre>
      <div className="buttons">
        <Copy text={client_secret} label="Copy the secret" className="yes" />
        <Copy text={lines} label="Copy both lines" className="" />
        <button type="button" onClick={close}>
          I have it
        </button>
      </div>
    </Dialog>
  );
}
