import type { ReactNode } from 'react';
import { Icon } from './icon.js';

/**
 * A list, and what is selected of it beside it. On a narrow screen one of the two is shown.
 * @param name the view, to which the way back leads
 * @param label what the list holds, and what one of it is
 * @param isOpen whether something is selected
 */
export function Split({
  name,
  label: [many, one],
  className = '',
  isOpen,
  close,
  list,
  children,
}: {
  name: string;
  label: [many: string, one: string];
  className?: string | undefined;
  isOpen: boolean;
  close: () => void;
  list: ReactNode;
  children: ReactNode;
}) {
  return (
    <div className={`split ${className} ${isOpen ? 'has-detail' : ''}`}>
      <section className="list" aria-label={many}>
        {list}
      </section>
      <section className="beside" aria-label={one}>
        <button type="button" className="back" onClick={close}>
          <Icon name="back" /> {name}
        </button>
        {children}
      </section>
    </div>
  );
}
