// In which order the kernels of `matmul.wgsl` and `matmul_tile.wgsl` add, so that a result has the same bits whichever computes it. Every
// STRANDS-th block of a row, from one of the first on, makes up a strand. A strand is added up block by block, and then the strands,
// the first one first. Floats are added to their strand one by one. Blocks of other formats are added up part by part first, each
// by itself, and then scaled; what is added to their numbers is a sum of its own, which joins the strand at its end.
override STRANDS: u32;
override ADD: bool;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

const PLAIN = FOURS < 8u;  // floats: neither scaled nor moved

// Adds four numbers of each of four rows, times those of x, to the rows' sums. It says how each is rounded: drivers are
// free to fuse what is written apart, here and not there.
fn add_products(sums: vec4<f32>, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
  let first = fma(vec4<f32>(a.x, b.x, c.x, d.x), vec4<f32>(v.x), sums);
  let second = fma(vec4<f32>(a.y, b.y, c.y, d.y), vec4<f32>(v.y), first);
  let third = fma(vec4<f32>(a.z, b.z, c.z, d.z), vec4<f32>(v.z), second);
  return fma(vec4<f32>(a.w, b.w, c.w, d.w), vec4<f32>(v.w), third);
}

fn total(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }

fn store(at: u32, sum: f32) {
  if (ADD) { y[at] += sum; } else { y[at] = sum; }
}
