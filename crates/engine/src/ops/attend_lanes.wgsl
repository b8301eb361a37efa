// Attention of one row over one split of the cached positions up to its own, for TOGETHER heads that share keys and
// values: one workgroup of eight lanes, which goes from block to block with a running softmax. For software drivers, where a read
// costs as much as many products, memory that threads share is no nearer than any other, and a reduction goes through the lanes one by
// one. So keys and values are read once for all of the heads, eight numbers at a time, and what all lanes need each has a part of, and
// hands it round. Scores: lanes do positions, two of a block of 16 each. Sums: lanes do numbers, eight of every 64. A row
// of one split is done here; the others' shares are combined by another kernel.
// Sums' indices are all known when the kernel is compiled, so that they need no memory. What goes over scores is a loop nevertheless:
// written out, all reads would come before all sums, and find nothing in the nearest memory.
@group(0) @binding(0) var queries: texture_storage_2d<rgba32uint, read>;
@group(0) @binding(1) var keys: texture_storage_2d<rgba32uint, read>;
@group(0) @binding(2) var values: texture_storage_2d<rgba32uint, read>;
var<private> sums: array<vec4<f32>, 32>;  // the lane's eight of every 64 numbers, as two fours of each head
var<private> s0: vec4<f32>; var<private> s1: vec4<f32>;  // scores of the lane's two positions, one number a head
const NONE = -1e30;

fn read_eight(cell: vec2<u32>) -> Eight {
  let four = textureLoad(queries, cell);
  return Eight(bitcast<vec4<f32>>(four), bitcast<vec4<f32>>(textureLoad(queries, cell + vec2<u32>(1u, 0u))));
}

fn key_eight(cell: vec2<u32>, place: u32) -> Eight {
  let at = cell + vec2<u32>(place, 0u);
  let first = textureLoad(keys, at);
  if (TEXELS == 1u) { return unpack_eight(first, vec4<u32>()); }
  return unpack_eight(first, textureLoad(keys, at + vec2<u32>(1u, 0u)));
}

fn value_eight(cell: vec2<u32>, place: u32) -> Eight {
  let at = cell + vec2<u32>(place, 0u);
  let first = textureLoad(values, at);
  if (TEXELS == 1u) { return unpack_eight(first, vec4<u32>()); }
  return unpack_eight(first, textureLoad(values, at + vec2<u32>(1u, 0u)));
}

// The lane's eight of the g-th 64 numbers, or the last one where it has none.
fn own_eight(g: u32, lane: u32) -> u32 { return min(g * 8u + lane, HEAD_DIM / 8u - 1u); }

// Eight numbers of the heads' queries, times those of the lane's two keys.
fn score(n: u32, cell: vec2<u32>, lane: u32, q0: vec4<f32>, q1: vec4<f32>, q2: vec4<f32>, q3: vec4<f32>,
         q4: vec4<f32>, q5: vec4<f32>, q6: vec4<f32>, q7: vec4<f32>) {
  if (HEAD_DIM % 64u > 0u && n >= HEAD_DIM / 8u) { return; }
  let a = key_eight(cell, key_place(lane, n));
  let b = key_eight(cell, key_place(lane + 8u, n));
  s0 += ((q0 * a.low.x + q1 * a.low.y) + (q2 * a.low.z + q3 * a.low.w))
      + ((q4 * a.high.x + q5 * a.high.y) + (q6 * a.high.z + q7 * a.high.w));
  s1 += ((q0 * b.low.x + q1 * b.low.y) + (q2 * b.low.z + q3 * b.low.w))
      + ((q4 * b.high.x + q5 * b.high.y) + (q6 * b.high.z + q7 * b.high.w));
}

// The g-th 64 numbers of the heads from `head` to `last` at most. Each lane reads eight, and hands them round.
fn score_all(g: u32, cell: vec2<u32>, row: u32, head: u32, last: u32, lane: u32) {
  let own = own_eight(g, lane) * 2u;
  let width = HEAD_DIM / 4u;
  let p = read_eight(vec2<u32>(head * width + own, row));
  var q = Eight(); var r = Eight(); var s = Eight();
  if (TOGETHER > 1u) { q = read_eight(vec2<u32>(min(head + 1u, last) * width + own, row)); }
  if (TOGETHER > 2u) { r = read_eight(vec2<u32>(min(head + 2u, last) * width + own, row)); }
  if (TOGETHER > 3u) { s = read_eight(vec2<u32>(min(head + 3u, last) * width + own, row)); }
  let a = vec4<f32>(p.low.x, q.low.x, r.low.x, s.low.x); let b = vec4<f32>(p.low.y, q.low.y, r.low.y, s.low.y);
  let c = vec4<f32>(p.low.z, q.low.z, r.low.z, s.low.z); let d = vec4<f32>(p.low.w, q.low.w, r.low.w, s.low.w);
  let e = vec4<f32>(p.high.x, q.high.x, r.high.x, s.high.x); let f = vec4<f32>(p.high.y, q.high.y, r.high.y, s.high.y);
  let h = vec4<f32>(p.high.z, q.high.z, r.high.z, s.high.z); let j = vec4<f32>(p.high.w, q.high.w, r.high.w, s.high.w);
  score(g * 8u + 0u, cell, lane, subgroupBroadcast(a, 0u), subgroupBroadcast(b, 0u), subgroupBroadcast(c, 0u),
        subgroupBroadcast(d, 0u), subgroupBroadcast(e, 0u), subgroupBroadcast(f, 0u), subgroupBroadcast(h, 0u), subgroupBroadcast(j, 0u));
  score(g * 8u + 1u, cell, lane, subgroupBroadcast(a, 1u), subgroupBroadcast(b, 1u), subgroupBroadcast(c, 1u),
        subgroupBroadcast(d, 1u), subgroupBroadcast(e, 1u), subgroupBroadcast(f, 1u), subgroupBroadcast(h, 1u), subgroupBroadcast(j, 1u));
  score(g * 8u + 2u, cell, lane, subgroupBroadcast(a, 2u), subgroupBroadcast(b, 2u), subgroupBroadcast(c, 2u),
        subgroupBroadcast(d, 2u), subgroupBroadcast(e, 2u), subgroupBroadcast(f, 2u), subgroupBroadcast(h, 2u), subgroupBroadcast(j, 2u));
  score(g * 8u + 3u, cell, lane, subgroupBroadcast(a, 3u), subgroupBroadcast(b, 3u), subgroupBroadcast(c, 3u),
        subgroupBroadcast(d, 3u), subgroupBroadcast(e, 3u), subgroupBroadcast(f, 3u), subgroupBroadcast(h, 3u), subgroupBroadcast(j, 3u));
  score(g * 8u + 4u, cell, lane, subgroupBroadcast(a, 4u), subgroupBroadcast(b, 4u), subgroupBroadcast(c, 4u),
        subgroupBroadcast(d, 4u), subgroupBroadcast(e, 4u), subgroupBroadcast(f, 4u), subgroupBroadcast(h, 4u), subgroupBroadcast(j, 4u));
  score(g * 8u + 5u, cell, lane, subgroupBroadcast(a, 5u), subgroupBroadcast(b, 5u), subgroupBroadcast(c, 5u),
        subgroupBroadcast(d, 5u), subgroupBroadcast(e, 5u), subgroupBroadcast(f, 5u), subgroupBroadcast(h, 5u), subgroupBroadcast(j, 5u));
  score(g * 8u + 6u, cell, lane, subgroupBroadcast(a, 6u), subgroupBroadcast(b, 6u), subgroupBroadcast(c, 6u),
        subgroupBroadcast(d, 6u), subgroupBroadcast(e, 6u), subgroupBroadcast(f, 6u), subgroupBroadcast(h, 6u), subgroupBroadcast(j, 6u));
  score(g * 8u + 7u, cell, lane, subgroupBroadcast(a, 7u), subgroupBroadcast(b, 7u), subgroupBroadcast(c, 7u),
        subgroupBroadcast(d, 7u), subgroupBroadcast(e, 7u), subgroupBroadcast(f, 7u), subgroupBroadcast(h, 7u), subgroupBroadcast(j, 7u));
}

// The highest of the lanes' numbers, of each head.
fn highest(v: vec4<f32>) -> vec4<f32> {
  let a = max(max(subgroupBroadcast(v, 0u), subgroupBroadcast(v, 1u)), max(subgroupBroadcast(v, 2u), subgroupBroadcast(v, 3u)));
  let b = max(max(subgroupBroadcast(v, 4u), subgroupBroadcast(v, 5u)), max(subgroupBroadcast(v, 6u), subgroupBroadcast(v, 7u)));
  return max(a, b);
}

fn add(at: u32, eight: Eight, weight: f32) {
  sums[at] += weight * eight.low;
  sums[at + 1u] += weight * eight.high;
}

// The lane's eight of the g-th 64 numbers of a value, times the heads' weights of its position.
fn sum(g: u32, cell: vec2<u32>, position: u32, lane: u32, w: vec4<f32>) {
  if (g * 64u >= HEAD_DIM) { return; }
  let value = value_eight(cell, value_place(position, own_eight(g, lane)));
  add(g * 8u, value, w.x);
  if (TOGETHER > 1u) { add(g * 8u + 2u, value, w.y); }
  if (TOGETHER > 2u) { add(g * 8u + 4u, value, w.z); }
  if (TOGETHER > 3u) { add(g * 8u + 6u, value, w.w); }
}

fn sum_all(cell: vec2<u32>, position: u32, lane: u32, w: vec4<f32>) {
  sum(0u, cell, position, lane, w); sum(1u, cell, position, lane, w); sum(2u, cell, position, lane, w); sum(3u, cell, position, lane, w);
}

fn scale(g: u32, by: vec4<f32>) {
  sums[g * 8u] *= by.x; sums[g * 8u + 1u] *= by.x; sums[g * 8u + 2u] *= by.y; sums[g * 8u + 3u] *= by.y;
  sums[g * 8u + 4u] *= by.z; sums[g * 8u + 5u] *= by.z; sums[g * 8u + 6u] *= by.w; sums[g * 8u + 7u] *= by.w;
}

// What a workgroup is about.
struct Work { row: u32, share: u32, whole: u32, last: u32, splits: u32, lane: u32 }

// The lane's eight of the g-th 64 numbers of a head: what is found of them, and what it is divided by if that is all.
fn store(g: u32, h: u32, work: Work, total: f32) {
  let n = g * 8u + work.lane;
  let head = work.whole + h;
  if (n >= HEAD_DIM / 8u || head > work.last) { return; }
  let own = Eight(sums[g * 8u + h * 2u], sums[g * 8u + h * 2u + 1u]);
  let fours = HEAD_DIM / 4u;
  if (work.splits == 1u) {
    write_four(work.row, head * fours + 2u * n, HEADS * fours, own.low / total);
    write_four(work.row, head * fours + 2u * n + 1u, HEADS * fours, own.high / total);
  } else {
    let share = work.share + head * (fours + 1u);
    shares[share + 2u * n] = own.low;
    shares[share + 2u * n + 1u] = own.high;
  }
}

fn store_head(h: u32, work: Work, peak: f32, total: f32) {
  store(0u, h, work, total); store(1u, h, work, total); store(2u, h, work, total); store(3u, h, work, total);
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
  for (var begin = start; begin < end; begin += BLOCK) {
    let cell = block_origin(blocks[table + begin / BLOCK], kv_head);
    s0 = vec4<f32>(); s1 = vec4<f32>();
    for (var g = 0u; g * 64u < HEAD_DIM; g++) { score_all(g, cell, row, head, last, lane); }
    let near = begin + lane < end;
    let far = begin + lane + 8u < end;
    s0 = select(vec4<f32>(NONE), s0 * unit, near);
    s1 = select(vec4<f32>(NONE), s1 * unit, far);
    let top = max(peak, highest(max(s0, s1)));
    let shrink = exp(peak - top);
    let w0 = select(vec4<f32>(), exp(s0 - top), near);
    let w1 = select(vec4<f32>(), exp(s1 - top), far);
    peak = top;
    total = total * shrink + (w0 + w1);
    scale(0u, shrink); scale(1u, shrink); scale(2u, shrink); scale(3u, shrink);
    let rest = end - begin - 1u;  // positions past it are not read, for nobody knows what is there
    sum_all(cell, min(0u, rest), lane, subgroupBroadcast(w0, 0u));
    sum_all(cell, min(1u, rest), lane, subgroupBroadcast(w0, 1u));
    sum_all(cell, min(2u, rest), lane, subgroupBroadcast(w0, 2u));
    sum_all(cell, min(3u, rest), lane, subgroupBroadcast(w0, 3u));
    sum_all(cell, min(4u, rest), lane, subgroupBroadcast(w0, 4u));
    sum_all(cell, min(5u, rest), lane, subgroupBroadcast(w0, 5u));
    sum_all(cell, min(6u, rest), lane, subgroupBroadcast(w0, 6u));
    sum_all(cell, min(7u, rest), lane, subgroupBroadcast(w0, 7u));
    sum_all(cell, min(8u, rest), lane, subgroupBroadcast(w1, 0u));
    sum_all(cell, min(9u, rest), lane, subgroupBroadcast(w1, 1u));
    sum_all(cell, min(10u, rest), lane, subgroupBroadcast(w1, 2u));
    sum_all(cell, min(11u, rest), lane, subgroupBroadcast(w1, 3u));
    sum_all(cell, min(12u, rest), lane, subgroupBroadcast(w1, 4u));
    sum_all(cell, min(13u, rest), lane, subgroupBroadcast(w1, 5u));
    sum_all(cell, min(14u, rest), lane, subgroupBroadcast(w1, 6u));
    sum_all(cell, min(15u, rest), lane, subgroupBroadcast(w1, 7u));
  }
  total = subgroupAdd(total);
  let share = (group.y * SPLITS + split) * HEADS * (HEAD_DIM / 4u + 1u);
  let work = Work(row, share, head, last, split_count(length), lane);
  store_head(0u, work, peak.x, total.x);
  if (TOGETHER > 1u) { store_head(1u, work, peak.y, total.y); }
  if (TOGETHER > 2u) { store_head(2u, work, peak.z, total.z); }
  if (TOGETHER > 3u) { store_head(3u, work, peak.w, total.w); }
}
