// y[t][first + r] (+)= sum over k of w[r][k] * x[t][k]. One subgroup computes 4 rows for COLS tokens: its
// lanes share out the row's 16-byte words, and a fixed tree sums the lanes. Neither depends on how many
// tokens or rows there are, so a token's result has the same bits in any batch.
struct Immediates { rows: u32, tokens: u32, columns: u32, stride: u32, first: u32 }
var<immediate> i: Immediates;
override KIND: u32;  // 0 F32, 1 F16, 2 Q8_0
override COLS: u32;  // 1 or 4
override ADD: bool;
@group(0) @binding(0) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

// The n-th four numbers of a 16-byte word.
fn four(word: vec4<u32>, n: u32) -> vec4<f32> {
  if (KIND == 0u) { return bitcast<vec4<f32>>(word); }
  if (KIND == 1u) {
    let half = select(word.xy, word.zw, n == 1u);
    return vec4<f32>(unpack2x16float(half.x), unpack2x16float(half.y));
  }
  return vec4<f32>(unpack4xI8(word[n]));
}

fn scale(block: u32) -> f32 {
  let pair = unpack2x16float(scales[block >> 1u]);
  return select(pair.x, pair.y, (block & 1u) == 1u);
}

fn products(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(dot(a, v), dot(b, v), dot(c, v), dot(d, v));
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

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_id) subgroup: u32,
        @builtin(num_subgroups) subgroups: u32, @builtin(subgroup_size) lanes: u32,
        @builtin(subgroup_invocation_id) lane: u32) {
  let row = (group.x * subgroups + subgroup) * 4u;
  if (row >= i.rows) { return; }
  let fours = 1u << KIND;                             // fours in a word: 1, 2, 4
  let words = i.columns / (4u * fours);               // words in a row
  let width = i.columns / 4u;                         // fours in a row of x
  // Rows and tokens past the end repeat the last one; `store` drops them.
  let last = i.rows - 1u;
  let w0 = row * words; let w1 = min(row + 1u, last) * words;
  let w2 = min(row + 2u, last) * words; let w3 = min(row + 3u, last) * words;
  let token = group.y * COLS;
  let x0 = token * width; let x1 = min(token + 1u, i.tokens - 1u) * width;
  let x2 = min(token + 2u, i.tokens - 1u) * width; let x3 = min(token + 3u, i.tokens - 1u) * width;
  var s0 = vec4<f32>(); var s1 = vec4<f32>(); var s2 = vec4<f32>(); var s3 = vec4<f32>();
  for (var word = lane; word < words; word += lanes) {
    let q0 = w[w0 + word]; let q1 = w[w1 + word]; let q2 = w[w2 + word]; let q3 = w[w3 + word];
    var p0 = vec4<f32>(); var p1 = vec4<f32>(); var p2 = vec4<f32>(); var p3 = vec4<f32>();
    for (var n = 0u; n < fours; n++) {
      let a = four(q0, n); let b = four(q1, n); let c = four(q2, n); let d = four(q3, n);
      let k = word * fours + n;
      p0 += products(a, b, c, d, x[x0 + k]);
      if (COLS > 1u) {
        p1 += products(a, b, c, d, x[x1 + k]);
        p2 += products(a, b, c, d, x[x2 + k]);
        p3 += products(a, b, c, d, x[x3 + k]);
      }
    }
    var f = vec4<f32>(1.0);
    if (KIND == 2u) {
      f = vec4<f32>(scale((w0 + word) >> 1u), scale((w1 + word) >> 1u), scale((w2 + word) >> 1u), scale((w3 + word) >> 1u));
    }
    s0 += p0 * f;
    if (COLS > 1u) { s1 += p1 * f; s2 += p2 * f; s3 += p3 * f; }
  }
  s0 = subgroupAdd(s0);
  if (COLS > 1u) { s1 = subgroupAdd(s1); s2 = subgroupAdd(s2); s3 = subgroupAdd(s3); }
  if (lane == 0u) {
    store(token, row, s0);
    if (COLS > 1u) { store(token + 1u, row, s1); store(token + 2u, row, s2); store(token + 3u, row, s3); }
  }
}
