// Numbers in bytes, sixteen in a texel; behind those of a block the scales, four in a texel of each position, as floats. Of each four bytes
// the first three are moved up by 128: so each is unpacked by a mask and a conversion, as so many times 1, 256, 65,536 and 16,777,216.
fn block_width() -> u32 { return BLOCK * (HEAD_DIM / 16u + (HEAD_DIM + 127u) / 128u); }
fn pack_sixteen(low: Eight, high: Eight, scale: u32) -> vec4<u32> {
  let words = vec4<u32>(pack_bytes(low.low, scale), pack_bytes(low.high, scale), pack_bytes(high.low, scale), pack_bytes(high.high, scale));
  return words ^ vec4<u32>(0x00808080u);
}

// Where the n-th sixteen of a position lies, from where its head and block begin, ordered as eights are.
fn key_place(position: u32, n: u32) -> u32 { return n * BLOCK + position % BLOCK; }
fn value_place(position: u32, n: u32) -> u32 { return position % BLOCK * (HEAD_DIM / 16u) + n; }

// Where the scales of its n-th 128 numbers lie.
fn scale_place(position: u32, n: u32) -> u32 { return (HEAD_DIM / 16u + n) * BLOCK + position % BLOCK; }
