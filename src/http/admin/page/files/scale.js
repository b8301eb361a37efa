// From numbers to places in a picture.

/** A straight scale. */
export function linear([from, to], [start, end]) {
  const length = to - from || 1;
  return (value) => start + ((value - from) / length) * (end - start);
}

/** A scale of even ratios that begins at 0, which has a place of its own. */
export function budgetScale(most, [start, end]) {
  const least = 4;
  const room = Math.log(Math.max(most, least * 2) / least);
  const gap = (end - start) * 0.06;
  return (value) => {
    if (value < least) return start + (gap * Math.max(value, 0)) / least;
    return start + gap + (Math.log(value / least) / room) * (end - start - gap);
  };
}

/** Budgets to write at an axis: 0, and powers of ten or of four between. */
export function budgetTicks(most) {
  const step = most > 20_000 ? 10 : 4;
  const ticks = [0];
  for (let tick = step === 10 ? 10 : 16; tick <= most * 1.001; tick *= step) ticks.push(tick);
  return ticks;
}

/** The round number at or above this one: 1, 2 or 5 and zeros. */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const times = value / power;
  return (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10) * power;
}
