// The factors of an even block and the next: their 16-bit floats are one word, which is read once.
fn two_factors(b: u32, c: u32, part: u32) -> vec4<f32> {
  let pair = unpack2x16float(scale_word(b >> 1u));
  return vec4<f32>(factors_of(pair.x), factors_of(pair.y));
}
