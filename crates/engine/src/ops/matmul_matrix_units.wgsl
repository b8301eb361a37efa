// y[t][first + r] (+)= sum over k of w[r][k] * x[t][k], for many tokens, by the matrix units of a GPU: 16-bit floats times 16-bit floats,
// added up as 32-bit ones. In which order they add is theirs to know, so a token's bits depend on how many run with it. A
// workgroup computes ROWS rows for TOKENS tokens, each of its four subgroups a quarter, in four matrices of 16 by 16.
// Subgroups have 32 threads. No other subgroup operation may stand here: a driver fails at both in one shader.
struct Immediates { rows: u32, tokens: u32, columns: u32, stride: u32, first: u32 }
var<immediate> i: Immediates;
override ADD: bool;
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

const ROWS = 64u;
const TOKENS = 64u;
const THREADS = 128u;
const DEPTH = 8u;    // fours of each that are multiplied at a time
const PADDED = 40u;  // numbers from row to row, so that rows lie in different banks
const LARGEST = 65504.0;
var<workgroup> weights: array<f16, 2560>;  // of each row in turn, PADDED
var<workgroup> inputs: array<f16, 2560>;   // of each token in turn, PADDED
var<workgroup> results: array<f32, 1024>;  // of each subgroup in turn, 16 tokens by 16 rows

fn put_weights(at: u32, numbers: vec4<f32>) {
  for (var n = 0u; n < 4u; n++) { weights[at + n] = f16(numbers[n]); }
}

fn put_inputs(at: u32, numbers: vec4<f32>) {
  let fitting = clamp(numbers, vec4<f32>(-LARGEST), vec4<f32>(LARGEST));
  for (var n = 0u; n < 4u; n++) { inputs[at + n] = f16(fitting[n]); }
}

// The fours of rows and tokens from `begin` on; zeros past their end.
fn fetch(thread: u32, row: u32, token: u32, begin: u32) {
  let width = i.columns / 4u;
  let blocks = width / FOURS;
  let own = thread % ROWS;
  let base = min(row + own, i.rows - 1u) * blocks;
  for (var m = 0u; m < 4u; m++) {
    let n = thread / ROWS * 4u + m;
    let b = (begin + n) / FOURS;
    var numbers = vec4<f32>();
    if (b < blocks) {
      let f = factors(base + b, n % FOURS * PARTS / FOURS);
      numbers = fma(four(load(base + b), (begin + n) % FOURS), vec4<f32>(f.x), vec4<f32>(f.y));
    }
    put_weights(own * PADDED + n * 4u, numbers);
  }
  for (var m = thread; m < TOKENS * DEPTH; m += THREADS) {
    let n = begin + m % DEPTH;
    var numbers = vec4<f32>();
    if (n < width) { numbers = x[min(token + m / DEPTH, i.tokens - 1u) * width + n]; }
    put_inputs(m / DEPTH * PADDED + m % DEPTH * 4u, numbers);
  }
}

// Stores what a subgroup has put into `results`.
fn store_results(subgroup: u32, lane: u32, token: u32, row: u32) {
  for (var n = lane; n < 256u; n += 32u) {
    let t = token + n / 16u;
    let r = row + n % 16u;
    if (t < i.tokens && r < i.rows) {
      let at = t * i.stride + i.first + r;
      let sum = results[subgroup * 256u + n];
      if (ADD) { y[at] += sum; } else { y[at] = sum; }
    }
  }
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let subgroup = thread / 32u;
  let lane = thread % 32u;
  let token = group.x * TOKENS;
  let row = group.y * ROWS;
  let own_token = subgroup / 2u * 32u;
  let own_row = subgroup % 2u * 32u;
  var c00 = coop_mat16x16<f32, C>(); var c01 = coop_mat16x16<f32, C>();
  var c10 = coop_mat16x16<f32, C>(); var c11 = coop_mat16x16<f32, C>();
  let stride = PADDED;
  for (var begin = 0u; begin < i.columns / 4u; begin += DEPTH) {
    fetch(thread, row, token, begin);
    workgroupBarrier();
    for (var k = 0u; k < DEPTH * 4u; k += 16u) {
      let t0 = own_token * PADDED + k; let t1 = t0 + 16u * PADDED;
      let r0 = own_row * PADDED + k; let r1 = r0 + 16u * PADDED;
      let a0 = coopLoadT<coop_mat16x16<f16, A>>(&inputs[t0], stride);
      let a1 = coopLoadT<coop_mat16x16<f16, A>>(&inputs[t1], stride);
      let b0 = coopLoad<coop_mat16x16<f16, B>>(&weights[r0], stride);
      let b1 = coopLoad<coop_mat16x16<f16, B>>(&weights[r1], stride);
      c00 = coopMultiplyAdd(a0, b0, c00); c01 = coopMultiplyAdd(a0, b1, c01);
      c10 = coopMultiplyAdd(a1, b0, c10); c11 = coopMultiplyAdd(a1, b1, c11);
    }
    workgroupBarrier();
  }
  let place = subgroup * 256u;
  let side = 16u;
  let first_token = token + own_token;
  let first_row = row + own_row;
  coopStoreT(c00, &results[place], side);
  workgroupBarrier();
  store_results(subgroup, lane, first_token, first_row);
  workgroupBarrier();
  coopStoreT(c01, &results[place], side);
  workgroupBarrier();
  store_results(subgroup, lane, first_token, first_row + 16u);
  workgroupBarrier();
  coopStoreT(c10, &results[place], side);
  workgroupBarrier();
  store_results(subgroup, lane, first_token + 16u, first_row);
  workgroupBarrier();
  coopStoreT(c11, &results[place], side);
  workgroupBarrier();
  store_results(subgroup, lane, first_token + 16u, first_row + 16u);
}
