import icon from '../../contracts/icon.svg';

/** The mark and the name. */
export function Logo() {
  return (
    <span className="logo">
      <img src={icon} alt="" /> Agent Fleet
    </span>
  );
}
