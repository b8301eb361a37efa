// y[t][first + r] (+)= sum over k of w[r][k] * x[t][k], for many tokens, with x in bytes. A workgroup computes ROWS rows for TOKENS
// tokens, two blocks of each at a time: its threads unpack the weights once and put them where all can read them, beside the bytes of x.
// Then a thread multiplies four rows with EACH tokens. It goes through a row strand by strand, and adds in the order that
// `matmul_int8_sums.wgsl` says. Workgroups that share rows are neighbours, so that they find them in the device's cache.
struct Immediates { rows: u32, tokens: u32, columns: u32, stride: u32, first: u32 }
var<immediate> i: Immediates;

const DEPTH = 2u;             // blocks
const APART = TOKENS / EACH;  // a thread's tokens are so far from each other
const THREADS = 16u * APART;
const RESULTS = 4u * EACH;
var<workgroup> weights: array<vec4<u32>, DEPTH * 2u * ROWS>;  // of each block and half in turn, ROWS
var<workgroup> scaling: array<vec4<f32>, DEPTH * ROWS>;
var<workgroup> inputs: array<vec4<u32>, DEPTH * 2u * TOKENS>;
var<workgroup> units: array<vec2<u32>, DEPTH * TOKENS>;

// Two blocks of all rows and tokens, from that place of the order in which they are added on. `longest` is how many blocks a strand has.
fn fetch(thread: u32, row: u32, token: u32, place: u32, longest: u32) {
  let blocks = i.columns / 32u;
  for (var m = thread; m < DEPTH * ROWS; m += THREADS) {
    let b = (place + m / ROWS) / longest + (place + m / ROWS) % longest * STRANDS;
    // Past the end of a strand it is of no matter what they are, for those of x are zero. So are rows past the end, which are not stored.
    let at = min(row + m % ROWS, i.rows - 1u) * blocks + min(b, blocks - 1u);
    let block = load(at);
    let own = m / ROWS * 2u * ROWS + m % ROWS;
    weights[own] = half_bytes(block, 0u);
    weights[own + ROWS] = half_bytes(block, 1u);
    scaling[m] = block_factors(at);
  }
  for (var m = thread; m < DEPTH * TOKENS; m += THREADS) {
    let b = (place + m / TOKENS) / longest + (place + m / TOKENS) % longest * STRANDS;
    let source = min(token + m % TOKENS, i.tokens - 1u) * blocks;
    let own = m / TOKENS * 2u * TOKENS + m % TOKENS;
    var unit = vec2<u32>();
    if (b < blocks) {
      inputs[own] = x[2u * source + b];
      inputs[own + TOKENS] = x[2u * source + blocks + b];
      unit = x_scales[source + b];
    }
    units[m] = unit;
  }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let token = group.x * TOKENS;
  let row = group.y * ROWS;
  let longest = (i.columns / 32u + STRANDS - 1u) / STRANDS;
  let r0 = thread % 16u;  // its rows: this one, and every sixteenth
  let t0 = thread / 16u;  // its tokens: this one, and every APART-th
  var sums: array<f32, RESULTS>;
  var strand: array<f32, RESULTS>;
  var left = longest;
  for (var place = 0u; place < STRANDS * longest; place += DEPTH) {
    fetch(thread, row, token, place, longest);
    workgroupBarrier();
    for (var d = 0u; d < DEPTH; d++) {
      var first: array<vec4<u32>, 4>;
      var second: array<vec4<u32>, 4>;
      var factor: array<vec4<f32>, 4>;
      for (var r = 0u; r < 4u; r++) {
        first[r] = weights[d * 2u * ROWS + r0 + 16u * r];
        second[r] = weights[(d * 2u + 1u) * ROWS + r0 + 16u * r];
        factor[r] = scaling[d * ROWS + r0 + 16u * r];
      }
      for (var t = 0u; t < EACH; t++) {
        let low = inputs[d * 2u * TOKENS + t0 + APART * t];
        let high = inputs[(d * 2u + 1u) * TOKENS + t0 + APART * t];
        let unit = units[d * TOKENS + t0 + APART * t];
        for (var r = 0u; r < 4u; r++) {
          let n = t * 4u + r;
          strand[n] = add_block(strand[n], multiply(first[r], low), multiply(second[r], high), factor[r], unit);
        }
      }
      left -= 1u;
      if (left == 0u) {
        left = longest;
        for (var n = 0u; n < RESULTS; n++) { sums[n] += strand[n]; strand[n] = 0.0; }
      }
    }
    workgroupBarrier();
  }
  for (var t = 0u; t < EACH; t++) {
    let own = token + t0 + APART * t;
    for (var r = 0u; r < 4u; r++) {
      let at = row + r0 + 16u * r;
      if (own < i.tokens && at < i.rows) { store(own * i.stride + i.first + at, sums[t * 4u + r]); }
    }
  }
}
