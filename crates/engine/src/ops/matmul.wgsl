// y[t][first + r] (+)= sum over k of w[r][k] * x[t][k]. One subgroup computes 4 rows for COLS tokens: its
// lanes share out the row's blocks, and a fixed tree sums the lanes. Neither depends on how many
// tokens or rows there are, so a token's result has the same bits in any batch. Which tokens and which rows, `columns` says.
override ADD: bool;
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

fn products(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(dot(a, v), dot(b, v), dot(c, v), dot(d, v));
}

fn total(v: vec4<f32>) -> f32 { return dot(v, vec4<f32>(1.0)); }

fn store(token: u32, row: u32, sums: vec4<f32>) {
  if (token == NONE) { return; }
  for (var r = 0u; r < 4u; r++) {
    if (row + r < i.rows) {
      let at = token * i.stride + i.first + row + r;
      if (ADD) { y[at] += sums[r]; } else { y[at] = sums[r]; }
    }
  }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_id) subgroup: u32,
        @builtin(num_subgroups) subgroups: u32, @builtin(subgroup_size) lanes: u32,
        @builtin(subgroup_invocation_id) lane: u32) {
  let row = (group.x * subgroups + subgroup) * 4u;
  let tokens = columns(group.y);
  if (row >= i.rows || tokens.y.x == NONE) { return; }
  let width = i.columns / 4u;    // fours in a row
  let blocks = width / FOURS;
  // Rows past the end repeat the last one; `store` drops them.
  let own = tokens.base + row; let end = tokens.base + i.rows - 1u;
  let b0 = own * blocks; let b1 = min(own + 1u, end) * blocks;
  let b2 = min(own + 2u, end) * blocks; let b3 = min(own + 3u, end) * blocks;
  let x0 = tokens.x.x * width; let x1 = tokens.x.y * width; let x2 = tokens.x.z * width; let x3 = tokens.x.w * width;
  var s0 = vec4<f32>(); var s1 = vec4<f32>(); var s2 = vec4<f32>(); var s3 = vec4<f32>();
  for (var b = lane; b < blocks; b += lanes) {
    let q0 = load(b0 + b); let q1 = load(b1 + b); let q2 = load(b2 + b); let q3 = load(b3 + b);
    for (var part = 0u; part < PARTS; part++) {
      var p0 = vec4<f32>(); var p1 = vec4<f32>(); var p2 = vec4<f32>(); var p3 = vec4<f32>();
      var t0 = vec4<f32>(); var t1 = vec4<f32>(); var t2 = vec4<f32>(); var t3 = vec4<f32>();  // sums of x
      for (var m = 0u; m < FOURS / PARTS; m++) {
        let n = part * (FOURS / PARTS) + m;
        let a = four(q0, n); let e = four(q1, n); let c = four(q2, n); let d = four(q3, n);
        let k = b * FOURS + n;
        let v0 = x[x0 + k];
        p0 += products(a, e, c, d, v0);
        if (OFFSET) { t0 += v0; }
        if (COLS > 1u) {
          let v1 = x[x1 + k]; let v2 = x[x2 + k]; let v3 = x[x3 + k];
          p1 += products(a, e, c, d, v1); p2 += products(a, e, c, d, v2); p3 += products(a, e, c, d, v3);
          if (OFFSET) { t1 += v1; t2 += v2; t3 += v3; }
        }
      }
      let f0 = factors(b0 + b, part); let f1 = factors(b1 + b, part);
      let f2 = factors(b2 + b, part); let f3 = factors(b3 + b, part);
      let scale = vec4<f32>(f0.x, f1.x, f2.x, f3.x);
      s0 += p0 * scale;
      if (COLS > 1u) { s1 += p1 * scale; s2 += p2 * scale; s3 += p3 * scale; }
      if (OFFSET) {
        let offset = vec4<f32>(f0.y, f1.y, f2.y, f3.y);
        s0 += total(t0) * offset;
        if (COLS > 1u) { s1 += total(t1) * offset; s2 += total(t2) * offset; s3 += total(t3) * offset; }
      }
    }
  }
  s0 = subgroupAdd(s0);
  if (COLS > 1u) { s1 = subgroupAdd(s1); s2 = subgroupAdd(s2); s3 = subgroupAdd(s3); }
  if (lane == 0u) {
    store(tokens.y.x, row, s0);
    if (COLS > 1u) { store(tokens.y.y, row, s1); store(tokens.y.z, row, s2); store(tokens.y.w, row, s3); }
  }
}
