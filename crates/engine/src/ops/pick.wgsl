// Takes the picked rows out of two kinds: the residual stream, and what attention gave. A thread does four numbers of each.
struct Immediates { picks: u32 }
var<immediate> i: Immediates;
override HIDDEN: u32;
override QUERIES: u32;
@group(0) @binding(0) var<storage, read> picks: array<vec2<u32>>;  // row, slot
@group(0) @binding(1) var<storage, read> h: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> picked: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
  if (at.y >= i.picks) { return; }
  let row = picks[at.y].x;
  let hidden = HIDDEN / 4u;
  let queries = QUERIES / 4u;
  if (at.x < hidden) { picked[at.y * hidden + at.x] = h[row * hidden + at.x]; }
  if (at.x < queries) { write_four(at.y, at.x, queries, read_four(row, at.x, queries)); }
}
