// The cache in textures, for software drivers: TEXTURE_ROW bytes in a row, in which keys or values of one head in as many blocks as fit lie
// side by side.
const VECTORS = TEXTURE_ROW / 16u;
struct Eight { low: vec4<f32>, high: vec4<f32> }

// Where what a block has of a head begins.
fn block_origin(block: u32, head: u32) -> vec2<u32> {
  let beside = VECTORS / block_width();
  return vec2<u32>(block % beside * block_width(), block / beside * KV_HEADS + head);
}
