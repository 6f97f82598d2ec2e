// Numbers and times as people read them.

/** Money in US dollars: as many digits as tell something. */
export function money(usd: number): string {
  if (usd === 0) return '$0';
  if (usd >= 100) return `$${usd.toFixed(0)}`;
  if (usd >= 0.01) return `$${usd.toFixed(2)}`;
  return usd < 0.000001 ? '<$0.000001' : `$${usd.toPrecision(2).includes('e') ? usd.toFixed(6) : String(Number(usd.toPrecision(2)))}`;
}

/** A duration in milliseconds. */
export function duration(ms: number): string {
  if (ms < 1) return '0 ms';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 59.95) return `${seconds < 9.95 ? seconds.toFixed(1) : seconds.toFixed(0)} s`;
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  return minutes < 60 ? `${minutes} min ${whole % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** How long ago a moment was; both in milliseconds. */
export function ago(then: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - then) / 1000));
  if (seconds < 60) return 'just now';
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ago`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ago`;
  const days = Math.floor(hours / 24);
  return days === 1 ? 'yesterday' : `${days} days ago`;
}
