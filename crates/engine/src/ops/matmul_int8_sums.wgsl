// How `matmul_int8.wgsl` and `matmul_int8_tile.wgsl` add, so that a result has the same bits whichever computes it. Every STRANDS-th
// block of a row, from one of the first on, makes up a strand. Of a block the products of bytes are added up as whole numbers, in which
// no order matters, then scaled and added to its strand; the strands are added up at last, the first one first.
override ADD: bool;
@group(0) @binding(2) var<storage, read> x: array<vec4<u32>>;  // as `quantise.wgsl` has it, as is `x_scales`
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

const STRANDS = 32u;

fn multiply(a: vec4<u32>, b: vec4<u32>) -> i32 {
  return dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
}

// The bytes of a block's first half, or its second.
fn half_bytes(block: Block, side: u32) -> vec4<u32> {
  return vec4<u32>(bytes(block, side * 4u), bytes(block, side * 4u + 1u), bytes(block, side * 4u + 2u), bytes(block, side * 4u + 3u));
}

// A strand's sum and one more block: the products of its halves, what the weights' numbers are scaled with and moved by in either half,
// and the block of x's scale and sums. It says how each is rounded: drivers are free to fuse what is written apart, here and not there.
fn add_block(sum: f32, first: i32, second: i32, factor: vec4<f32>, scale: vec2<u32>) -> f32 {
  let unit = bitcast<f32>(scale.x);
  let first_sum = bitcast<i32>(scale.y << 16u) >> 16u;
  let second_sum = bitcast<i32>(scale.y) >> 16u;
  if (PARTS == 2u) {
    let a = fma(f32(first), factor.x, f32(first_sum) * factor.y);
    let b = fma(f32(second), factor.z, f32(second_sum) * factor.w);
    return fma(a + b, unit, sum);
  }
  if (OFFSET) { return fma(fma(f32(first + second), factor.x, f32(first_sum + second_sum) * factor.y), unit, sum); }
  return fma(f32(first + second) * factor.x, unit, sum);
}

fn block_factors(b: u32) -> vec4<f32> {
  let first = factors(b, 0u);
  if (PARTS == 2u) { return vec4<f32>(first, factors(b, 1u)); }
  return vec4<f32>(first, vec2<f32>());
}

fn store(at: u32, sum: f32) {
  if (ADD) { y[at] += sum; } else { y[at] = sum; }
}
