// y[t][first + r] (+)= sum over k of w[r][k] * x[t][k], for many tokens, with x in bytes. A workgroup computes ROWS rows for as many
// tokens, two blocks of each at a time: its threads unpack the weights once and put them where all can read them, beside the bytes of x,
// and read on while they multiply. A thread multiplies four rows with EACH tokens. It goes through a row strand by strand, and adds
// in the order that `matmul_int8_sums.wgsl` says. Workgroups that share rows are neighbours, so that they find them in the device's cache.
struct Immediates { rows: u32, tokens: u32, columns: u32, stride: u32, first: u32 }
var<immediate> i: Immediates;

const ROWS = 64u;
const DEPTH = 2u;  // blocks
const THREADS = DEPTH * ROWS;
const APART = ROWS / EACH;  // a thread's tokens are so far from each other
const RESULTS = 4u * EACH;
var<workgroup> weights: array<vec4<u32>, DEPTH * 2u * ROWS>;  // of each block and half in turn, ROWS
var<workgroup> scaling: array<vec2<f32>, DEPTH * PARTS * ROWS>;
var<workgroup> inputs: array<vec4<u32>, DEPTH * 2u * ROWS>;
var<workgroup> units: array<vec3<f32>, DEPTH * ROWS>;

// What one thread reads at a time: a block of a row, and one of a token.
struct Share { block: Block, factor: vec4<f32>, low: vec4<u32>, high: vec4<u32>, unit: vec2<u32> }

// `row` and `token` are where theirs begin, `b` is the block.
fn fetch(row: u32, token: u32, b: u32) -> Share {
  let blocks = i.columns / 32u;
  // Past the end of a strand it is of no matter what the weights are, for x is zero. So are rows past the end, which are not stored.
  let at = min(b, blocks - 1u);
  var share: Share;
  share.block = load(row + at);
  share.factor = block_factors(row + at);
  if (b < blocks) {
    share.low = x[2u * token + at];
    share.high = x[2u * token + blocks + at];
    share.unit = x_scales[token + at];
  }
  return share;
}

fn put(thread: u32, share: Share) {
  let own = thread / ROWS * 2u * ROWS + thread % ROWS;
  weights[own] = half_bytes(share.block, 0u);
  weights[own + ROWS] = half_bytes(share.block, 1u);
  inputs[own] = share.low;
  inputs[own + ROWS] = share.high;
  units[thread] = block_unit(share.unit);
  let part = thread / ROWS * PARTS * ROWS + thread % ROWS;
  scaling[part] = share.factor.xy;
  if (PARTS == 2u) { scaling[part + ROWS] = share.factor.zw; }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let token = group.x * ROWS;
  let row = group.y * ROWS;
  let blocks = i.columns / 32u;
  let longest = (blocks + STRANDS - 1u) / STRANDS;  // how many blocks a strand has
  let own_row = min(row + thread % ROWS, i.rows - 1u) * blocks;
  let own_token = min(token + thread % ROWS, i.tokens - 1u) * blocks;
  let r0 = thread % 16u;  // its rows: this one, and every sixteenth
  let t0 = thread / 16u;  // its tokens: this one, and every APART-th
  var sums: array<f32, RESULTS>;
  var strand: array<f32, RESULTS>;
  var left = longest;
  var next = thread / ROWS;  // the place of what it reads, in the order in which all are added
  var share = fetch(own_row, own_token, next / longest + next % longest * STRANDS);
  for (var place = 0u; place < STRANDS * longest; place += DEPTH) {
    put(thread, share);
    workgroupBarrier();
    next += DEPTH;
    share = fetch(own_row, own_token, next / longest + next % longest * STRANDS);
    for (var d = 0u; d < DEPTH; d++) {
      var first: array<vec4<u32>, 4>;
      var second: array<vec4<u32>, 4>;
      var factor: array<vec4<f32>, 4>;
      for (var r = 0u; r < 4u; r++) {
        let own = d * 2u * ROWS + r0 + 16u * r;
        first[r] = weights[own];
        second[r] = weights[own + ROWS];
        let part = d * PARTS * ROWS + r0 + 16u * r;
        factor[r] = vec4<f32>(scaling[part], vec2<f32>());
        if (PARTS == 2u) { factor[r] = vec4<f32>(factor[r].xy, scaling[part + ROWS]); }
      }
      for (var t = 0u; t < EACH; t++) {
        let own = d * 2u * ROWS + t0 + APART * t;
        let low = inputs[own];
        let high = inputs[own + ROWS];
        let unit = units[d * ROWS + t0 + APART * t];
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
