// Attention of one row over one split of the cached positions up to its own, for TOGETHER heads that share keys and
// values: one workgroup of eight lanes, which goes from block to block with a running softmax. For software drivers, where a read
// costs as much as many products, memory that threads share is no nearer than any other, and a reduction goes through the lanes one by
// one. So keys and values are read once for all of the heads, a texel at a time, queries once for all blocks, and what all lanes
// need each has a part of, and hands it round. Scores: lanes do positions, two of a block of 16 each. Sums: lanes do numbers, as many as a
// texel has, for two positions at a time. A row of one split is done here; the others' shares are combined by another kernel.
// `attend_eights.wgsl` and `attend_sixteens.wgsl` say how keys and values are read.
// All is written out, block by block: indices are known when the kernel is compiled, so that what it keeps needs no memory of its own.
// A loop inside would mask all that goes from turn to turn. Drivers do not leave out products with zero: what is not for TOGETHER heads
// is not written.
@group(0) @binding(0) var queries: texture_storage_2d<rgba32uint, read>;
@group(0) @binding(1) var keys: texture_storage_2d<rgba32uint, read>;
@group(0) @binding(2) var values: texture_storage_2d<rgba32uint, read>;
// The lane's eight of every 64 numbers of each head's query.
var<private> q0: array<Eight, 4>; var<private> q1: array<Eight, 4>; var<private> q2: array<Eight, 4>; var<private> q3: array<Eight, 4>;
// Each eight of the queries in all lanes, handed round before the first block: of so many numbers that they stay near.
var<private> h0: array<Eight, 32>; var<private> h1: array<Eight, 32>; var<private> h2: array<Eight, 32>; var<private> h3: array<Eight, 32>;
const NEAR = 512u;
var<private> sums: array<vec4<f32>, 32>;  // the lane's numbers, in fours, of each head
var<private> s0: vec4<f32>; var<private> s1: vec4<f32>;  // scores of the lane's two positions, one number a head
const NONE = -1e30;

fn read_eight(cell: vec2<u32>) -> Eight {
  let four = textureLoad(queries, cell);
  return Eight(bitcast<vec4<f32>>(four), bitcast<vec4<f32>>(textureLoad(queries, cell + vec2<u32>(1u, 0u))));
}

// The lane's eight of the g-th 64 numbers, or the last one where it has none.
fn own_eight(g: u32, lane: u32) -> u32 { return min(g * 8u + lane, HEAD_DIM / 8u - 1u); }

fn read_queries(g: u32, row: u32, head: u32, last: u32, lane: u32) {
  if (g * 64u >= HEAD_DIM) { return; }
  let own = own_eight(g, lane) * 2u;
  let width = HEAD_DIM / 4u;
  q0[g] = read_eight(vec2<u32>(head * width + own, row));
  if (TOGETHER > 1u) { q1[g] = read_eight(vec2<u32>(min(head + 1u, last) * width + own, row)); }
  if (TOGETHER > 2u) { q2[g] = read_eight(vec2<u32>(min(head + 2u, last) * width + own, row)); }
  if (TOGETHER > 3u) { q3[g] = read_eight(vec2<u32>(min(head + 3u, last) * width + own, row)); }
}

// What another lane has.
fn of_lane(e: Eight, lane: u32) -> Eight { return Eight(subgroupShuffle(e.low, lane), subgroupShuffle(e.high, lane)); }

fn hand(g: u32, n: u32) {
  h0[g * 8u + n] = of_lane(q0[g], n);
  if (TOGETHER > 1u) { h1[g * 8u + n] = of_lane(q1[g], n); }
  if (TOGETHER > 2u) { h2[g * 8u + n] = of_lane(q2[g], n); }
  if (TOGETHER > 3u) { h3[g * 8u + n] = of_lane(q3[g], n); }
}

fn hand_round(g: u32) {
  if (g * 64u >= HEAD_DIM || HEAD_DIM * TOGETHER > NEAR) { return; }
  hand(g, 0u); hand(g, 1u); hand(g, 2u); hand(g, 3u); hand(g, 4u); hand(g, 5u); hand(g, 6u); hand(g, 7u);
}

// The n-th eight of a query: the one that was handed round, or the one that a lane has now.
fn handed(once: Eight, own: Eight, n: u32) -> Eight {
  if (HEAD_DIM * TOGETHER > NEAR) { return of_lane(own, n); }
  return once;
}

fn product(a: Eight, b: Eight) -> f32 {
  let low = a.low * b.low;
  let high = a.high * b.high;
  return ((low.x + low.y) + (low.z + low.w)) + ((high.x + high.y) + (high.z + high.w));
}

// The n-th eight of the g-th 64 numbers of the heads' queries, times those of the lane's two keys.
fn score_eight(g: u32, n: u32, near: Eight, far: Eight) {
  let eight = g * 8u + n;
  let p = handed(h0[eight], q0[g], n);
  s0.x += product(p, near);
  s1.x += product(p, far);
  if (TOGETHER > 1u) { let q = handed(h1[eight], q1[g], n); s0.y += product(q, near); s1.y += product(q, far); }
  if (TOGETHER > 2u) { let q = handed(h2[eight], q2[g], n); s0.z += product(q, near); s1.z += product(q, far); }
  if (TOGETHER > 3u) { let q = handed(h3[eight], q3[g], n); s0.w += product(q, near); s1.w += product(q, far); }
}

// The highest of eight lanes' numbers.
fn highest_of(v: f32) -> f32 {
  let two = max(v, subgroupShuffleXor(v, 1u));
  let four = max(two, subgroupShuffleXor(two, 2u));
  return max(four, subgroupShuffleXor(four, 4u));
}

// The same of each head.
fn highest(v: vec4<f32>) -> vec4<f32> {
  var found = vec4<f32>(highest_of(v.x), NONE, NONE, NONE);
  if (TOGETHER > 1u) { found.y = highest_of(v.y); }
  if (TOGETHER > 2u) { found.z = highest_of(v.z); }
  if (TOGETHER > 3u) { found.w = highest_of(v.w); }
  return found;
}

// The exponential of each head's number.
fn exponential(v: vec4<f32>) -> vec4<f32> {
  var found = vec4<f32>(exp(v.x), 0.0, 0.0, 0.0);
  if (TOGETHER > 1u) { found.y = exp(v.y); }
  if (TOGETHER > 2u) { found.z = exp(v.z); }
  if (TOGETHER > 3u) { found.w = exp(v.w); }
  return found;
}

fn add(at: u32, a: Eight, b: Eight, weight_a: f32, weight_b: f32) {
  sums[at] += weight_a * a.low + weight_b * b.low;
  sums[at + 1u] += weight_a * a.high + weight_b * b.high;
}

// What a workgroup is about.
struct Work { row: u32, share: u32, whole: u32, last: u32, splits: u32, lane: u32 }

// Four numbers of a head: what is found of them, and what it is divided by if that is all.
fn store_four(work: Work, head: u32, n: u32, sum: vec4<f32>, total: f32) {
  let fours = HEAD_DIM / 4u;
  if (work.splits == 1u) {
    write_four(work.row, head * fours + n, HEADS * fours, sum / total);
  } else {
    shares[work.share + head * (fours + 1u) + n] = sum;
  }
}

fn store_head(h: u32, work: Work, peak: f32, total: f32) {
  store_sums(h, work, total);
  if (work.lane == 0u && work.splits > 1u && work.whole + h <= work.last) {
    shares[work.share + (work.whole + h) * (HEAD_DIM / 4u + 1u) + HEAD_DIM / 4u] = vec4<f32>(peak, total, 0.0, 0.0);
  }
}

@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = i.first + group.y;
  let kv_head = group.x / TEAMS % KV_HEADS;
  let split = group.x / (TEAMS * KV_HEADS);
  let length = rows[row].z + 1u;
  let start = split * span(length);
  if (start >= length) { return; }
  let end = min(start + span(length), length);
  let table = rows[row].y * BLOCKS;
  let sharing = HEADS / KV_HEADS;
  let head = kv_head * sharing + group.x % TEAMS * TOGETHER;
  let last = (kv_head + 1u) * sharing - 1u;  // of those that share
  let unit = 1.0 / sqrt(f32(HEAD_DIM));
  var peak = vec4<f32>(NONE);
  var total = vec4<f32>();
  read_queries(0u, row, head, last, lane); read_queries(1u, row, head, last, lane);
  read_queries(2u, row, head, last, lane); read_queries(3u, row, head, last, lane);
  prepare_queries(lane);
  hand_round(0u); hand_round(1u); hand_round(2u); hand_round(3u);
  for (var begin = start; begin < end; begin += BLOCK) {
    let cell = block_origin(blocks[table + begin / BLOCK], kv_head);
    s0 = vec4<f32>(); s1 = vec4<f32>();
    score_all(cell, lane);
    let near = begin + lane < end;
    let far = begin + lane + 8u < end;
    s0 = select(vec4<f32>(NONE), s0 * unit, near);
    s1 = select(vec4<f32>(NONE), s1 * unit, far);
    let top = max(peak, highest(max(s0, s1)));
    let shrink = exponential(peak - top);
    let w0 = select(vec4<f32>(), exponential(s0 - top), near);
    let w1 = select(vec4<f32>(), exponential(s1 - top), far);
    peak = top;
    total = total * shrink + (w0 + w1);
    shrink_sums(shrink);
    let rest = end - begin - 1u;
    read_scales(cell, rest, lane);
    sum_two(cell, 0u, rest, lane, w0, w1); sum_two(cell, 2u, rest, lane, w0, w1);
    sum_two(cell, 4u, rest, lane, w0, w1); sum_two(cell, 6u, rest, lane, w0, w1);
    sum_two(cell, 8u, rest, lane, w0, w1); sum_two(cell, 10u, rest, lane, w0, w1);
    sum_two(cell, 12u, rest, lane, w0, w1); sum_two(cell, 14u, rest, lane, w0, w1);
  }
  join_sums();
  total = subgroupAdd(total);
  let share = (group.y * SPLITS + split) * HEADS * (HEAD_DIM / 4u + 1u);
  let work = Work(row, share, head, last, split_count(length), lane);
  store_head(0u, work, peak.x, total.x);
  if (TOGETHER > 1u) { store_head(1u, work, peak.y, total.y); }
  if (TOGETHER > 2u) { store_head(2u, work, peak.z, total.z); }
  if (TOGETHER > 3u) { store_head(3u, work, peak.w, total.w); }
}
