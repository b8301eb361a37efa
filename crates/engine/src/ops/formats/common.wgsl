// What the formats of weights share. Each has a file that says how a block of its numbers is read: FOURS, how many fours of
// numbers a block has; UNIT, how many blocks have scales in common; PARTS, how many scales a block has; OFFSET, whether something
// is added to every number; and three functions:
//   load(b)          what block b is made of, counted over the whole matrix
//   four(block, n)   its n-th four numbers, neither scaled nor moved. Formats of 32 numbers have `bytes(block, n)` for it,
//                    which gives them as signed bytes of a word
//   factors(b, part) what the numbers of a part are multiplied with, and what is added to them then
// Where they lie, `buffers.wgsl` and `textures.wgsl` say: `word(n)` is the n-th 16 bytes of all numbers, `scale_word(n)` the n-th 4 bytes
// of what stands beside them.

// So many rows lie interleaved: first the first unit of each, then the second of each, and so on.
override GROUP: u32 = 1u;

// Where the first block of a row lies among all blocks of so many rows, and how many blocks it is from unit to unit.
fn origin(row: u32, rows: u32, blocks: u32) -> vec2<u32> {
  let first = row / GROUP * GROUP;
  return vec2<u32>(first * blocks + (row - first) * UNIT, min(GROUP, rows - first) * UNIT);
}

// Where block b of that row lies.
fn place(origin: vec2<u32>, b: u32) -> u32 { return origin.x + b / UNIT * origin.y + b % UNIT; }

struct Block { numbers: vec4<u32>, more: vec4<u32> }

// Four bits each of the n-th four numbers of 32, a byte each.
fn low_bits(numbers: vec4<u32>, n: u32) -> u32 {
  if (n < 4u) { return numbers[n] & 0x0f0f0f0fu; }
  return (numbers[n - 4u] >> 4u) & 0x0f0f0f0fu;
}

// A fifth bit each. The bits of the n-th four numbers are the n-th of the word's four bytes.
fn fifth_bits(word: u32, n: u32) -> u32 { return ((word >> n) & 0x01010101u) << 4u; }

// The fifth and sixth bits, likewise.
fn upper_bits(words: vec4<u32>, n: u32) -> u32 {
  let word = select(words.x, words.y, n >= 4u);
  return ((word >> (2u * (n & 3u))) & 0x03030303u) << 4u;
}

fn signed_bytes(bytes: u32) -> vec4<f32> { return vec4<f32>(unpack4xI8(bytes)); }

// Scale and minimum of one of eight blocks, from two 16-bit floats and then two numbers of 6 bits for each block.
fn six_bits(at: u32, block: u32) -> vec2<f32> {
  let units = unpack2x16float(scale_word(at));
  let shift = 8u * (block & 3u);
  let first = scale_word(at + 1u) >> shift;   // of blocks 0 to 3 the scales, and upper bits of the others'
  let second = scale_word(at + 2u) >> shift;  // and the minimums
  let third = scale_word(at + 3u) >> shift;   // lower bits of the others'
  var six = vec2<u32>(first & 63u, second & 63u);
  if (block >= 4u) {
    six = vec2<u32>((third & 15u) | ((first >> 2u) & 48u), ((third >> 4u) & 15u) | ((second >> 2u) & 48u));
  }
  return units * vec2<f32>(six) * vec2<f32>(1.0, -1.0);
}
