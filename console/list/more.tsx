import { useEffect, useRef } from 'react';

/** The end of a list that has more: the next page is read once somebody sees it. */
export function More(list: {
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  isFetchNextPageError: boolean;
  fetchNextPage: () => unknown;
}) {
  const ref = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const end = ref.current;
    if (!list.hasNextPage || list.isFetchingNextPage || !end) return;
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting) && !list.isFetchNextPageError) void list.fetchNextPage();
    });
    observer.observe(end);
    return () => observer.disconnect();
    // With each drawing: whatever has ended or stopped the reading of a page, the end of the list is looked at again.
  });
  if (!list.hasNextPage) return null;
  return (
    <button
      ref={ref}
      type="button"
      className="link more-rows"
      disabled={list.isFetchingNextPage}
      onClick={() => void list.fetchNextPage()}
    >
      {list.isFetchingNextPage ? 'Reading more …' : 'Show more'}
    </button>
  );
}
