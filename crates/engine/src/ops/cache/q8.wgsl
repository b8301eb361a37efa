// The cache keeps bytes, four in a word. Behind the numbers of a block stand the scales, two in a word: those of 64 numbers of all
// positions, then those of the next 64.
alias Four = u32;
const SCALED = true;
fn unpack_four(v: Four) -> vec4<f32> { return vec4<f32>(unpack4xI8(v)); }
fn pack_scales(scales: vec2<u32>) -> u32 { return (scales.x >> 16u) | scales.y; }
fn unpack_scale(word: u32, group: u32) -> f32 { return bitcast<f32>(select(word << 16u, word & 0xffff0000u, (group & 1u) == 1u)); }

// What a position takes, with its scales.
fn head_fours() -> u32 { return HEAD_DIM / 4u + (HEAD_DIM + 63u) / 64u; }

// Where the scales of the n-th 64 numbers of a position lie, counted as its numbers' places are.
fn scale_place(position: u32, n: u32) -> u32 { return (HEAD_DIM / 4u + n) * BLOCK + position % BLOCK; }

// Of the key whose first four numbers lie in that cell, the scale of its `group`-th 32 numbers.
fn key_scale(cell: u32, group: u32) -> f32 { return unpack_scale(keys[cell + (HEAD_DIM / 4u + group / 2u) * BLOCK], group); }

// All scales of a value in the block that begins in that cell.
fn value_scales(cell: u32, position: u32) -> vec4<u32> {
  var words = vec4<u32>(values[cell + scale_place(position, 0u)], 0u, 0u, 0u);
  if (HEAD_DIM > 64u) { words.y = values[cell + scale_place(position, 1u)]; }
  if (HEAD_DIM > 128u) { words.z = values[cell + scale_place(position, 2u)]; }
  if (HEAD_DIM > 192u) { words.w = values[cell + scale_place(position, 3u)]; }
  return words;
}
