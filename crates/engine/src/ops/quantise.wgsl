// Rows of numbers in bytes, 32 in a block: what `matmul_int8.wgsl` multiplies. Of a row's blocks come first all first halves, then all
// second halves, so that threads that read neighbouring blocks read what lies together. Of each block: the float that a byte is
// times, NaN where a number is none or infinite, and the sums of the bytes of either half, 16 bits each.
const NAN = 0x7fc00000u;
struct ByteBlock { halves: array<vec4<u32>, 2>, scale: vec2<u32> }

// What a kernel that makes such rows has bound last: `numbers` and `scales`.
fn put_block(row: u32, b: u32, blocks: u32, block: ByteBlock) {
  numbers[row * 2u * blocks + b] = block.halves[0];
  numbers[(row * 2u + 1u) * blocks + b] = block.halves[1];
  scales[row * blocks + b] = block.scale;
}

fn largest(v: vec4<f32>) -> f32 {
  let a = abs(v);
  return max(max(a.x, a.y), max(a.z, a.w));
}

fn sum_bytes(words: vec4<u32>) -> i32 {
  let ones = 0x01010101u;
  return dot4I8Packed(words.x, ones) + dot4I8Packed(words.y, ones) + dot4I8Packed(words.z, ones) + dot4I8Packed(words.w, ones);
}

fn quantise(fours: array<vec4<f32>, 8>) -> ByteBlock {
  var own = fours;
  var most = 0.0;
  var is_sound = true;
  for (var n = 0u; n < 8u; n++) {
    most = max(most, largest(own[n]));
    // False for NaN, too, which `max` may pass over.
    is_sound = is_sound && all(abs(own[n]) <= vec4<f32>(3.4028234e38));
  }
  let inverse = select(0.0, 127.0 / most, most > 0.0);
  var block: ByteBlock;
  for (var n = 0u; n < 8u; n++) { block.halves[n / 4u][n % 4u] = pack4xI8(vec4<i32>(round(own[n] * inverse))); }
  let sums = vec2<i32>(sum_bytes(block.halves[0]), sum_bytes(block.halves[1]));
  let both = (bitcast<u32>(sums.x) & 0xffffu) | (bitcast<u32>(sums.y) << 16u);
  block.scale = vec2<u32>(select(NAN, bitcast<u32>(most / 127.0), is_sound), both);
  return block;
}
