// 32 numbers of 5 bits; each eight blocks have four words with their scales and minimums, and eight of fifth bits.
const FOURS = 8u;
const UNIT = 8u;
const PARTS = 1u;
const OFFSET = true;
fn load(b: u32) -> Block { return Block(word(b), vec4<u32>(scale_word((b >> 3u) * 12u + 4u + (b & 7u)), 0u, 0u, 0u)); }
fn bytes(block: Block, n: u32) -> u32 { return low_bits(block.numbers, n) | fifth_bits(block.more.x, n); }
fn factors(b: u32, part: u32) -> vec2<f32> { return six_bits((b >> 3u) * 12u, b & 7u); }
