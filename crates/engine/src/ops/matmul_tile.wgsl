// y[t][first + r] (+)= sum over k of w[r][k] * x[t][k], for many tokens and weights in floats. A workgroup computes ROWS rows for as many
// tokens, four fours of each at a time: its threads put them where all can read them, and read on while they multiply. A thread multiplies
// four rows with EACH tokens. It goes through a row strand by strand, and adds in the order that `matmul_sums.wgsl` says. Workgroups
// that share rows are neighbours, so that they find them in the device's cache.
struct Immediates { rows: u32, tokens: u32, columns: u32, stride: u32, first: u32 }
var<immediate> i: Immediates;

const ROWS = 64u;
const DEPTH = 4u;  // fours
const THREADS = 128u;
const SIDES = THREADS / ROWS;
const OWN = DEPTH / SIDES;   // fours that a thread reads of a row, and of a token
const EACH = 8u;
const APART = ROWS / EACH;   // a thread's tokens are so far from each other
const ACROSS = DEPTH / FOURS;  // blocks of a strand that are done at a time
var<workgroup> weights: array<vec4<f32>, DEPTH * ROWS>;  // of each four in turn, ROWS
var<workgroup> inputs: array<vec4<f32>, DEPTH * ROWS>;

struct Share { weights: array<vec4<f32>, OWN>, inputs: array<vec4<f32>, OWN> }

// Its fours of a row and of a token, whose first blocks are told, of the blocks from `begin` of a strand on. Past the strand's end it is
// of no matter what the weights are, for x is zero. So are rows past the end, which are not stored.
fn fetch(row: u32, token: u32, side: u32, strand: u32, begin: u32) -> Share {
  let blocks = i.columns / 4u / FOURS;
  var share: Share;
  for (var m = 0u; m < OWN; m++) {
    let n = side * OWN + m;
    let b = strand + (begin + n / FOURS) * STRANDS;
    let at = min(b, blocks - 1u);
    share.weights[m] = four(load(row + at), n % FOURS);
    if (b < blocks) { share.inputs[m] = x[(token + at) * FOURS + n % FOURS]; }
  }
  return share;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let token = group.x * ROWS;
  let row = group.y * ROWS;
  let blocks = i.columns / 4u / FOURS;
  let own_row = min(row + thread % ROWS, i.rows - 1u) * blocks;
  let own_token = min(token + thread % ROWS, i.tokens - 1u) * blocks;
  let side = thread / ROWS;
  // Neighbours, eight by four, read few different numbers at a time.
  let r0 = thread % 8u + thread / 32u % 2u * 8u;  // its rows: this one, and every sixteenth
  let t0 = thread / 8u % 4u + thread / 64u * 4u;  // its tokens: this one, and every APART-th
  let strands = min(STRANDS, blocks);
  var sums: array<vec4<f32>, EACH>;
  var sum: array<vec4<f32>, EACH>;  // of a strand
  var strand = 0u;
  var begin = 0u;
  var share = fetch(own_row, own_token, side, strand, begin);
  while (strand < strands) {
    for (var m = 0u; m < OWN; m++) {
      let own = (side * OWN + m) * ROWS + thread % ROWS;
      weights[own] = share.weights[m];
      inputs[own] = share.inputs[m];
    }
    workgroupBarrier();
    begin += ACROSS;
    let ends = strand + begin * STRANDS >= blocks;
    if (ends) { begin = 0u; strand++; }
    share = fetch(own_row, own_token, side, strand, begin);
    for (var n = 0u; n < DEPTH; n++) {
      let w = n * ROWS + r0;
      let a = weights[w]; let b = weights[w + 16u]; let c = weights[w + 32u]; let d = weights[w + 48u];
      for (var t = 0u; t < EACH; t++) { sum[t] = add_products(sum[t], a, b, c, d, inputs[n * ROWS + t0 + APART * t]); }
    }
    if (ends) {
      for (var t = 0u; t < EACH; t++) { sums[t] += sum[t]; sum[t] = vec4<f32>(); }
    }
    workgroupBarrier();
  }
  for (var t = 0u; t < EACH; t++) {
    let own = token + t0 + APART * t;
    for (var r = 0u; r < 4u; r++) {
      let at = row + r0 + 16u * r;
      if (own < i.tokens && at < i.rows) { store(own * i.stride + i.first + at, sums[t][r]); }
    }
  }
}
