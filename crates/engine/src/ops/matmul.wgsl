// y[t][first + r] (+)= sum over k of w[r][k] * x[t][k], for few tokens. A team of STRANDS threads computes 4 rows for COLS tokens, a
// thread a strand of each; neighbours read neighbouring blocks. In which order all is added `matmul_sums.wgsl` says. It depends neither on
// how many tokens or rows there are nor on the size of subgroups. Which tokens and which rows, `columns` says. Workgroups
// that share rows are neighbours, so that they find them in the device's cache.
const THREADS = 64u;
const PADDED = 65u;  // neighbours write to different banks, and read from different ones
var<workgroup> strands: array<f32, COLS * 260u>;  // of each token and row in turn, PADDED

fn keep(token: u32, thread: u32, sums: vec4<f32>) {
  for (var r = 0u; r < 4u; r++) { strands[(token * 4u + r) * PADDED + thread] = sums[r]; }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let teams = THREADS / STRANDS;
  let first = group.y * teams * 4u;
  let tokens = columns(group.x);
  if (first >= i.rows || tokens.y.x == NONE) { return; }
  let row = first + thread / STRANDS * 4u;
  let width = i.columns / 4u;    // fours in a row
  let blocks = width / FOURS;
  // Rows past the end repeat the last one, and are not stored.
  let own = tokens.base + row; let end = tokens.base + i.rows - 1u;
  let b0 = min(own, end) * blocks; let b1 = min(own + 1u, end) * blocks;
  let b2 = min(own + 2u, end) * blocks; let b3 = min(own + 3u, end) * blocks;
  var s0 = vec4<f32>(); var s1 = vec4<f32>(); var s2 = vec4<f32>(); var s3 = vec4<f32>();  // strands
  var o0 = vec4<f32>(); var o1 = vec4<f32>(); var o2 = vec4<f32>(); var o3 = vec4<f32>();  // what is added to their numbers
  var p0 = vec4<f32>(); var p1 = vec4<f32>(); var p2 = vec4<f32>(); var p3 = vec4<f32>();  // parts of blocks
  for (var b = thread % STRANDS; b < blocks; b += STRANDS) {
    let q0 = load(b0 + b); let q1 = load(b1 + b); let q2 = load(b2 + b); let q3 = load(b3 + b);
    for (var part = 0u; part < PARTS; part++) {
      if (!PLAIN) { p0 = vec4<f32>(); p1 = vec4<f32>(); p2 = vec4<f32>(); p3 = vec4<f32>(); }
      var t0 = vec4<f32>(); var t1 = vec4<f32>(); var t2 = vec4<f32>(); var t3 = vec4<f32>();  // sums of x
      for (var m = 0u; m < FOURS / PARTS; m++) {
        let n = part * (FOURS / PARTS) + m;
        let a = four(q0, n); let e = four(q1, n); let c = four(q2, n); let d = four(q3, n);
        let k = b * FOURS + n;
        let v0 = read_four(tokens.x.x, k, width);
        p0 = add_products(p0, a, e, c, d, v0);
        if (OFFSET) { t0 += v0; }
        if (COLS > 1u) {
          let v1 = read_four(tokens.x.y, k, width);
          let v2 = read_four(tokens.x.z, k, width);
          let v3 = read_four(tokens.x.w, k, width);
          p1 = add_products(p1, a, e, c, d, v1);
          p2 = add_products(p2, a, e, c, d, v2);
          p3 = add_products(p3, a, e, c, d, v3);
          if (OFFSET) { t1 += v1; t2 += v2; t3 += v3; }
        }
      }
      if (!PLAIN) {
        let f0 = factors(b0 + b, part); let f1 = factors(b1 + b, part);
        let f2 = factors(b2 + b, part); let f3 = factors(b3 + b, part);
        let scale = vec4<f32>(f0.x, f1.x, f2.x, f3.x);
        s0 = fma(p0, scale, s0);
        if (COLS > 1u) { s1 = fma(p1, scale, s1); s2 = fma(p2, scale, s2); s3 = fma(p3, scale, s3); }
        if (OFFSET) {
          let offset = vec4<f32>(f0.y, f1.y, f2.y, f3.y);
          o0 = fma(vec4<f32>(total(t0)), offset, o0);
          if (COLS > 1u) {
            o1 = fma(vec4<f32>(total(t1)), offset, o1);
            o2 = fma(vec4<f32>(total(t2)), offset, o2);
            o3 = fma(vec4<f32>(total(t3)), offset, o3);
          }
        }
      }
    }
  }
  if (PLAIN) { s0 = p0; s1 = p1; s2 = p2; s3 = p3; }
  keep(0u, thread, s0 + o0);
  if (COLS > 1u) { keep(1u, thread, s1 + o1); keep(2u, thread, s2 + o2); keep(3u, thread, s3 + o3); }
  workgroupBarrier();
  for (var n = thread; n < teams * COLS * 4u; n += THREADS) {
    let team = n / (COLS * 4u);
    let result = n % (COLS * 4u);  // token and row
    var sum = 0.0;
    for (var s = 0u; s < STRANDS; s++) { sum += strands[result * PADDED + team * STRANDS + s]; }
    let token = tokens.y[result / 4u];
    let at = first + team * 4u + result % 4u;
    if (token != NONE && at < i.rows) { store(token * i.stride + i.first + at, sum); }
  }
}
