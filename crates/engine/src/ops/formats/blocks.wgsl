// What formats of 32 numbers in a block share.
fn four(block: Block, n: u32) -> vec4<f32> { return signed_bytes(bytes(block, n)); }
