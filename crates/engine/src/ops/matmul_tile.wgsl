// y[t][first + r] (+)= sum over k of w[r][k] * x[t][k], for many tokens. A workgroup computes ROWS rows for TOKENS tokens, eight fours of
// each at a time: its threads unpack the weights once and put them, unscaled, where all can read them, beside the numbers of x.
// Then a thread multiplies four rows with four tokens. It goes through a row strand by strand, and adds in the order
// that `matmul_sums.wgsl` says. Workgroups that share rows are neighbours, so that they find them in the device's cache.
struct Immediates { rows: u32, tokens: u32, columns: u32, stride: u32, first: u32 }
var<immediate> i: Immediates;

const ROWS = 64u;
const TOKENS = 32u;
const THREADS = 128u;
const DEPTH = 8u;    // fours
const PADDED = 33u;  // those that write the fours of a token write to different banks
const EACH = min(FOURS, 4u);   // fours of a block that a thread unpacks at a time
const ACROSS = DEPTH / FOURS;  // blocks of a strand that are done at a time
var<workgroup> weights: array<vec4<f32>, 512>;          // of each four in turn, ROWS
var<workgroup> inputs: array<vec4<f32>, 264>;           // of each four in turn, PADDED
var<workgroup> scaling: array<vec2<f32>, PARTS * 64u>;  // factors of each part in turn, ROWS
var<workgroup> totals: array<f32, PARTS * 132u>;        // sums of x: of each part and number of a four in turn, PADDED

// The numbers of a strand from its block `begin` on. `row` and `token` are the first of the workgroup's.
fn fetch(thread: u32, row: u32, token: u32, strand: u32, begin: u32) {
  let width = i.columns / 4u;
  let blocks = width / FOURS;
  // Rows and tokens past the end repeat the last one, and are not stored.
  let own = thread % ROWS;
  let side = thread / ROWS;
  let base = min(row + own, i.rows - 1u) * blocks;
  for (var n = side * 4u; n < side * 4u + 4u; n += EACH) {
    // Past the end of the strand it is of no matter what they are, for those of x are zero.
    let block = load(base + min(strand + (begin + n / FOURS) * STRANDS, blocks - 1u));
    for (var m = 0u; m < EACH; m++) { weights[(n + m) * ROWS + own] = four(block, (n + m) % FOURS); }
  }
  if (!PLAIN && side < PARTS) { scaling[side * ROWS + own] = factors(base + strand + begin * STRANDS, side); }
  for (var m = thread; m < TOKENS * DEPTH; m += THREADS) {
    let n = m % DEPTH;
    let b = strand + (begin + n / FOURS) * STRANDS;
    var v = vec4<f32>();
    if (b < blocks) { v = x[min(token + m / DEPTH, i.tokens - 1u) * width + b * FOURS + n % FOURS]; }
    inputs[n * PADDED + m / DEPTH] = v;
  }
}

// Adds up what was fetched of x: each thread one of the four numbers of one token.
fn add_inputs(thread: u32) {
  for (var part = 0u; part < PARTS; part++) {
    var sum = 0.0;
    for (var m = 0u; m < DEPTH / PARTS; m++) {
      sum += inputs[(part * (DEPTH / PARTS) + m) * PADDED + thread / 4u][thread % 4u];
    }
    totals[(part * 4u + thread % 4u) * PADDED + thread / 4u] = sum;
  }
}

fn total_inputs(part: u32, token: u32) -> f32 {
  let at = part * 4u * PADDED + token;
  return total(vec4<f32>(totals[at], totals[at + PADDED], totals[at + 2u * PADDED], totals[at + 3u * PADDED]));
}

fn store_rows(token: u32, row: u32, sums: vec4<f32>) {
  if (token >= i.tokens) { return; }
  for (var r = 0u; r < 4u; r++) {
    if (row + r * 16u < i.rows) { store(token * i.stride + i.first + row + r * 16u, sums[r]); }
  }
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let token = group.x * TOKENS;
  let row = group.y * ROWS;
  let blocks = i.columns / 4u / FOURS;
  // Neighbours, eight by four, read few different numbers at a time.
  let r = thread % 8u + thread / 32u % 2u * 8u;  // its rows: this one, and every sixteenth
  let t = thread / 8u % 4u + thread / 64u * 4u;  // its tokens: this one, and every eighth
  var y0 = vec4<f32>(); var y1 = vec4<f32>(); var y2 = vec4<f32>(); var y3 = vec4<f32>();
  for (var strand = 0u; strand < min(STRANDS, blocks); strand++) {
    var s0 = vec4<f32>(); var s1 = vec4<f32>(); var s2 = vec4<f32>(); var s3 = vec4<f32>();
    var o0 = vec4<f32>(); var o1 = vec4<f32>(); var o2 = vec4<f32>(); var o3 = vec4<f32>();
    var p0 = vec4<f32>(); var p1 = vec4<f32>(); var p2 = vec4<f32>(); var p3 = vec4<f32>();
    for (var begin = 0u; strand + begin * STRANDS < blocks; begin += ACROSS) {
      fetch(thread, row, token, strand, begin);
      workgroupBarrier();
      var offset0 = vec4<f32>(); var offset1 = vec4<f32>();  // of each part
      for (var part = 0u; part < PARTS; part++) {
        if (!PLAIN) { p0 = vec4<f32>(); p1 = vec4<f32>(); p2 = vec4<f32>(); p3 = vec4<f32>(); }
        for (var m = 0u; m < DEPTH / PARTS; m++) {
          let n = part * (DEPTH / PARTS) + m;
          let w = n * ROWS + r;
          let a = weights[w]; let e = weights[w + 16u]; let c = weights[w + 32u]; let d = weights[w + 48u];
          let v = n * PADDED + t;
          p0 = add_products(p0, a, e, c, d, inputs[v]);
          p1 = add_products(p1, a, e, c, d, inputs[v + 8u]);
          p2 = add_products(p2, a, e, c, d, inputs[v + 16u]);
          p3 = add_products(p3, a, e, c, d, inputs[v + 24u]);
        }
        if (!PLAIN) {
          let f = part * ROWS + r;
          let f0 = scaling[f]; let f1 = scaling[f + 16u]; let f2 = scaling[f + 32u]; let f3 = scaling[f + 48u];
          let scale = vec4<f32>(f0.x, f1.x, f2.x, f3.x);
          s0 = fma(p0, scale, s0); s1 = fma(p1, scale, s1); s2 = fma(p2, scale, s2); s3 = fma(p3, scale, s3);
          if (part == 0u) { offset0 = vec4<f32>(f0.y, f1.y, f2.y, f3.y); } else { offset1 = vec4<f32>(f0.y, f1.y, f2.y, f3.y); }
        }
      }
      if (OFFSET) { add_inputs(thread); }
      workgroupBarrier();
      if (OFFSET) {
        for (var part = 0u; part < PARTS; part++) {
          let offset = select(offset0, offset1, part == 1u);
          o0 = fma(vec4<f32>(total_inputs(part, t)), offset, o0);
          o1 = fma(vec4<f32>(total_inputs(part, t + 8u)), offset, o1);
          o2 = fma(vec4<f32>(total_inputs(part, t + 16u)), offset, o2);
          o3 = fma(vec4<f32>(total_inputs(part, t + 24u)), offset, o3);
        }
      }
    }
    if (PLAIN) { s0 = p0; s1 = p1; s2 = p2; s3 = p3; }
    y0 += s0 + o0; y1 += s1 + o1; y2 += s2 + o2; y3 += s3 + o3;
  }
  store_rows(token + t, row + r, y0);
  store_rows(token + t + 8u, row + r, y1);
  store_rows(token + t + 16u, row + r, y2);
  store_rows(token + t + 24u, row + r, y3);
}
