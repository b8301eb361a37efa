// The cache in textures, for software drivers: TEXTURE_ROW bytes in a row, in which keys or values of one head in as many blocks as fit lie
// side by side. Numbers go in eights, of TEXELS texels each.
const VECTORS = TEXTURE_ROW / 16u;
struct Eight { low: vec4<f32>, high: vec4<f32> }

// Where the numbers of a head begin in a block.
fn block_origin(block: u32, head: u32) -> vec2<u32> {
  let width = BLOCK * (HEAD_DIM / 8u) * TEXELS;
  let beside = VECTORS / width;
  return vec2<u32>(block % beside * width, block / beside * KV_HEADS + head);
}

// Where the n-th eight of a position lies from there on. What lanes read at once lies together: of keys an eight of all positions, of
// values the eights of one.
fn key_place(position: u32, n: u32) -> u32 { return (n * BLOCK + position % BLOCK) * TEXELS; }
fn value_place(position: u32, n: u32) -> u32 { return (position % BLOCK * (HEAD_DIM / 8u) + n) * TEXELS; }
