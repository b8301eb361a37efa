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

// What a block of x is scaled with, and the sums of its bytes: of both halves, where the weights' halves are scaled alike, else of either.
fn block_unit(scale: vec2<u32>) -> vec3<f32> {
  let first = bitcast<i32>(scale.y << 16u) >> 16u;
  let second = bitcast<i32>(scale.y) >> 16u;
  return vec3<f32>(bitcast<f32>(scale.x), f32(select(first + second, first, PARTS == 2u)), f32(second));
}

// A strand's sum and one more block: the products of its halves, what the weights' numbers are scaled with and moved by in either half,
// and `block_unit` of x. It says how each is rounded: drivers are free to fuse what is written apart, here and not there.
fn add_block(sum: f32, first: i32, second: i32, factor: vec4<f32>, unit: vec3<f32>) -> f32 {
  if (PARTS == 2u) {
    let a = fma(f32(first), factor.x, unit.y * factor.y);
    let b = fma(f32(second), factor.z, unit.z * factor.w);
    return fma(a + b, unit.x, sum);
  }
  if (OFFSET) { return fma(fma(f32(first + second), factor.x, unit.y * factor.y), unit.x, sum); }
  return fma(f32(first + second) * factor.x, unit.x, sum);
}

fn block_factors(b: u32) -> vec4<f32> {
  let first = factors(b, 0u);
  if (PARTS == 2u) { return vec4<f32>(first, factors(b, 1u)); }
  return vec4<f32>(first, vec2<f32>());
}

fn store(at: u32, sum: f32) {
  if (ADD) { y[at] += sum; } else { y[at] = sum; }
}
