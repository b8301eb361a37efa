// Rows of numbers in bytes, 32 in a block: what `matmul_int8.wgsl` multiplies. Of a row's blocks come first all first halves, then all
// second halves, so that threads that read neighbouring blocks read what lies together. Of each block: the float that a byte is
// times, and the sums of the bytes of either half, 16 bits each.
struct ByteBlock { halves: array<vec4<u32>, 2>, scale: vec2<u32> }

fn largest(v: vec4<f32>) -> f32 {
  let a = abs(v);
  return max(max(a.x, a.y), max(a.z, a.w));
}

fn sum_bytes(words: vec4<u32>) -> i32 {
  let ones = 0x01010101u;
  return dot4I8Packed(words.x, ones) + dot4I8Packed(words.y, ones) + dot4I8Packed(words.z, ones) + dot4I8Packed(words.w, ones);
}

fn quantise(fours: array<vec4<f32>, 8>) -> ByteBlock {
  var numbers = fours;
  var most = 0.0;
  for (var n = 0u; n < 8u; n++) { most = max(most, largest(numbers[n])); }
  let inverse = select(0.0, 127.0 / most, most > 0.0);
  var block: ByteBlock;
  for (var n = 0u; n < 8u; n++) { block.halves[n / 4u][n % 4u] = pack4xI8(vec4<i32>(round(numbers[n] * inverse))); }
  let sums = vec2<i32>(sum_bytes(block.halves[0]), sum_bytes(block.halves[1]));
  block.scale = vec2<u32>(bitcast<u32>(most / 127.0), (bitcast<u32>(sums.x) & 0xffffu) | (bitcast<u32>(sums.y) << 16u));
  return block;
}
