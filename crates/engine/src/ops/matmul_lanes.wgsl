// y[t][first + r] (+)= sum over k of w[r][k] * x[t][k], w being Q8_0. One lane computes 4 rows for COLS tokens, in
// the order of k: no sum goes across lanes. What lanes share is the reading of x, which costs a software driver as
// much as eight products: of every 32 numbers each lane reads four, and hands them round.
struct Immediates { rows: u32, tokens: u32, columns: u32, stride: u32, first: u32 }
var<immediate> i: Immediates;
override COLS: u32;  // 1 or 4
override ADD: bool;
override LANES: u32; // in a workgroup; 8 or a multiple
@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
var<private> p0: vec4<f32>; var<private> p1: vec4<f32>; var<private> p2: vec4<f32>; var<private> p3: vec4<f32>;

fn scale(block: u32) -> f32 {
  let pair = unpack2x16float(scales[block >> 1u]);
  return select(pair.x, pair.y, (block & 1u) == 1u);
}

fn four(bytes: u32) -> vec4<f32> { return vec4<f32>(unpack4xI8(bytes)); }

// Four numbers of each row, times those of each token.
fn add(q0: u32, q1: u32, q2: u32, q3: u32, z0: vec4<f32>, z1: vec4<f32>, z2: vec4<f32>, z3: vec4<f32>) {
  let m = mat4x4<f32>(four(q0), four(q1), four(q2), four(q3));  // a row of the weights is a column of m
  p0 += z0 * m;
  if (COLS > 1u) { p1 += z1 * m; p2 += z2 * m; p3 += z3 * m; }
}

fn store(token: u32, row: u32, sums: vec4<f32>) {
  if (token >= i.tokens) { return; }
  for (var r = 0u; r < 4u; r++) {
    if (row + r < i.rows) {
      let at = token * i.stride + i.first + row + r;
      if (ADD) { y[at] += sums[r]; } else { y[at] = sums[r]; }
    }
  }
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32,
        @builtin(subgroup_invocation_id) lane: u32) {
  let row = (group.x * LANES + thread) * 4u;
  // Only whole subgroups leave: a lane past the last row still has its share of x to read.
  if (row - lane * 4u >= i.rows) { return; }
  let blocks = i.columns / 32u;
  let width = i.columns / 4u;
  // Rows and tokens past the end repeat the last one; `store` drops them.
  let last = i.rows - 1u;
  let b0 = min(row, last) * blocks; let b1 = min(row + 1u, last) * blocks;
  let b2 = min(row + 2u, last) * blocks; let b3 = min(row + 3u, last) * blocks;
  let token = group.y * COLS;
  let own = lane & 7u;  // larger subgroups read the same again
  let x0 = token * width + own; let x1 = min(token + 1u, i.tokens - 1u) * width + own;
  let x2 = min(token + 2u, i.tokens - 1u) * width + own; let x3 = min(token + 3u, i.tokens - 1u) * width + own;
  var s0 = vec4<f32>(); var s1 = vec4<f32>(); var s2 = vec4<f32>(); var s3 = vec4<f32>();
  for (var b = 0u; b < blocks; b++) {
    var v0 = x[x0 + b * 8u]; var v1 = vec4<f32>(); var v2 = vec4<f32>(); var v3 = vec4<f32>();
    if (COLS > 1u) { v1 = x[x1 + b * 8u]; v2 = x[x2 + b * 8u]; v3 = x[x3 + b * 8u]; }
    p0 = vec4<f32>(); p1 = vec4<f32>(); p2 = vec4<f32>(); p3 = vec4<f32>();
    var q0 = w[(b0 + b) * 2u]; var q1 = w[(b1 + b) * 2u]; var q2 = w[(b2 + b) * 2u]; var q3 = w[(b3 + b) * 2u];
    add(q0.x, q1.x, q2.x, q3.x, subgroupBroadcast(v0, 0u), subgroupBroadcast(v1, 0u), subgroupBroadcast(v2, 0u), subgroupBroadcast(v3, 0u));
    add(q0.y, q1.y, q2.y, q3.y, subgroupBroadcast(v0, 1u), subgroupBroadcast(v1, 1u), subgroupBroadcast(v2, 1u), subgroupBroadcast(v3, 1u));
    add(q0.z, q1.z, q2.z, q3.z, subgroupBroadcast(v0, 2u), subgroupBroadcast(v1, 2u), subgroupBroadcast(v2, 2u), subgroupBroadcast(v3, 2u));
    add(q0.w, q1.w, q2.w, q3.w, subgroupBroadcast(v0, 3u), subgroupBroadcast(v1, 3u), subgroupBroadcast(v2, 3u), subgroupBroadcast(v3, 3u));
    q0 = w[(b0 + b) * 2u + 1u]; q1 = w[(b1 + b) * 2u + 1u]; q2 = w[(b2 + b) * 2u + 1u]; q3 = w[(b3 + b) * 2u + 1u];
    add(q0.x, q1.x, q2.x, q3.x, subgroupBroadcast(v0, 4u), subgroupBroadcast(v1, 4u), subgroupBroadcast(v2, 4u), subgroupBroadcast(v3, 4u));
    add(q0.y, q1.y, q2.y, q3.y, subgroupBroadcast(v0, 5u), subgroupBroadcast(v1, 5u), subgroupBroadcast(v2, 5u), subgroupBroadcast(v3, 5u));
    add(q0.z, q1.z, q2.z, q3.z, subgroupBroadcast(v0, 6u), subgroupBroadcast(v1, 6u), subgroupBroadcast(v2, 6u), subgroupBroadcast(v3, 6u));
    add(q0.w, q1.w, q2.w, q3.w, subgroupBroadcast(v0, 7u), subgroupBroadcast(v1, 7u), subgroupBroadcast(v2, 7u), subgroupBroadcast(v3, 7u));
    let f = vec4<f32>(scale(b0 + b), scale(b1 + b), scale(b2 + b), scale(b3 + b));
    s0 += p0 * f;
    if (COLS > 1u) { s1 += p1 * f; s2 += p2 * f; s3 += p3 * f; }
  }
  store(token, row, s0);
  if (COLS > 1u) { store(token + 1u, row, s1); store(token + 2u, row, s2); store(token + 3u, row, s3); }
}
