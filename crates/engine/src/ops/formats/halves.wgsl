// What formats share in which a block has one 16-bit float. What its numbers are multiplied with, `factors_of` makes of it.
fn factors(b: u32, part: u32) -> vec2<f32> {
  let pair = unpack2x16float(scale_word(b >> 1u));
  return factors_of(select(pair.x, pair.y, (b & 1u) == 1u));
}
