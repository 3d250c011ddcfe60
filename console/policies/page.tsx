import type { ReactNode } from 'react';
import { Icon } from '../parts/icon.js';

/** A page over the list, with a way back. */
export function Page({ title, back, children }: { title: string; back: () => void; children: ReactNode }) {
  return (
    <div className="rule-page">
      <header>
        <button type="button" className="link line" onClick={back}>
          <Icon name="back" /> Policies
        </button>
        <h1>{title}</h1>
      </header>
      {children}
    </div>
  );
}
