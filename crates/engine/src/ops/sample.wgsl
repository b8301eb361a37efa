// Draws one token for each pick, one workgroup a pick, and moves its slot's budget machine by it. The machine is
// the one of phases.rs; the draw is a race: every token i that passes top-k, top-p and min-p runs with rate
// exp(logit / temperature), on a random number made of (seed, how many tokens this slot has drawn, i) alone.
override VOCAB: u32;
@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> picks: array<vec2<u32>>;  // row, slot

override THREADS: u32;  // 256 at most
const NONE = 0xffffffffu;
var<workgroup> sums: array<vec4<f32>, 256>;  // four a subgroup, which has 4 threads at least
var<workgroup> tops: array<f32, 64>;
var<workgroup> ids: array<u32, 64>;
var<private> thread: u32; var<private> subgroup: u32; var<private> subgroups: u32; var<private> lane: u32;
var<private> base: u32;     // where this pick's logits begin
var<private> banned: vec2<u32>;

fn logit(id: u32) -> f32 {
  let value = logits[base + id];
  // False for NaN, too.
  if (value > -1e30 && id != banned.x && id != banned.y) { return value; }
  return -1e30;
}

// A number of the same order as the float, ties of -0 and 0 aside.
fn order(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  return select(bits | 0x80000000u, ~bits, (bits >> 31u) == 1u);
}

fn mix(value: u32) -> u32 {
  let state = value * 747796405u + 2891336453u;
  let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
  return (word >> 22u) ^ word;
}

// The best value over all threads and the lowest id that has it.
fn best(value: f32, id: u32) -> u32 {
  let top = subgroupMax(value);
  let first = subgroupMin(select(NONE, id, value == top));
  if (lane == 0u) { tops[subgroup] = top; ids[subgroup] = first; }
  workgroupBarrier();
  var winner = ids[0];
  var high = tops[0];
  for (var s = 1u; s < subgroups; s++) {
    if (tops[s] > high || (tops[s] == high && ids[s] < winner)) { high = tops[s]; winner = ids[s]; }
  }
  workgroupBarrier();
  return winner;
}

// Sixteen sums over all threads.
fn add(own: mat4x4<f32>) -> mat4x4<f32> {
  let a = subgroupAdd(own[0]); let b = subgroupAdd(own[1]); let c = subgroupAdd(own[2]); let d = subgroupAdd(own[3]);
  if (lane == 0u) {
    let first = subgroup * 4u;
    sums[first] = a; sums[first + 1u] = b; sums[first + 2u] = c; sums[first + 3u] = d;
  }
  workgroupBarrier();
  var all = mat4x4<f32>();
  for (var s = 0u; s < subgroups; s++) {
    all += mat4x4<f32>(sums[s * 4u], sums[s * 4u + 1u], sums[s * 4u + 2u], sums[s * 4u + 3u]);
  }
  workgroupBarrier();
  return all;
}

// The tokens of at least an order weigh so much: their number, or their probability times a constant.
struct Weighing { by_probability: bool, top: f32, coldness: f32 }

// What the tokens of at least each of sixteen orders weigh, in one pass.
fn weigh(least: array<vec4<u32>, 4>, by: Weighing) -> mat4x4<f32> {
  let l0 = least[0]; let l1 = least[1]; let l2 = least[2]; let l3 = least[3];
  var own = mat4x4<f32>();
  let none = vec4<f32>();
  for (var id = thread; id < VOCAB; id += THREADS) {
    let value = logit(id);
    let at = vec4<u32>(order(value));
    var weight = vec4<f32>(1.0);
    if (by.by_probability) { weight = vec4<f32>(exp((value - by.top) * by.coldness)); }
    own[0] += select(none, weight, at >= l0);
    own[1] += select(none, weight, at >= l1);
    own[2] += select(none, weight, at >= l2);
    own[3] += select(none, weight, at >= l3);
  }
  return add(own);
}

// How many of four weights are enough. The lower the order, the more tokens weigh.
fn enough(weights: vec4<f32>, target_weight: f32) -> u32 {
  let ones = select(vec4<u32>(), vec4<u32>(1u), weights >= vec4<f32>(target_weight));
  return ones.x + ones.y + ones.z + ones.w;
}

// The highest order, not below `lowest`, at which the tokens weigh `target_weight` or more; found four bits at a time.
fn threshold(lowest: u32, target_weight: f32, by: Weighing) -> u32 {
  var found = 0u;
  for (var digit = 8u; digit > 0u; digit--) {
    let shift = vec4<u32>(4u * (digit - 1u));
    let start = vec4<u32>(found);
    let low = vec4<u32>(lowest);
    var trials: array<vec4<u32>, 4>;
    trials[0] = max(start | (vec4<u32>(1u, 2u, 3u, 4u) << shift), low);
    trials[1] = max(start | (vec4<u32>(5u, 6u, 7u, 8u) << shift), low);
    trials[2] = max(start | (vec4<u32>(9u, 10u, 11u, 12u) << shift), low);
    trials[3] = max(start | (vec4<u32>(13u, 14u, 15u, 15u) << shift), low);
    let weights = weigh(trials, by);
    var reached = enough(weights[0], target_weight) + enough(weights[1], target_weight)
        + enough(weights[2], target_weight) + enough(weights[3], target_weight);
    reached = min(reached, 15u);  // the last was tried twice
    found |= reached << (4u * (digit - 1u));
  }
  return max(found, lowest);
}

fn greedy() -> u32 {
  var high = -2e30;
  var winner = 0u;
  for (var id = thread; id < VOCAB; id += THREADS) {
    let value = logit(id);
    if (value > high) { high = value; winner = id; }
  }
  return best(high, winner);
}

fn race(slot: u32, first: u32) -> u32 {
  let top = logit(first);
  let coldness = 1.0 / bitcast<f32>(slots[slot + TEMPERATURE]);
  let top_k = slots[slot + TOP_K];
  let top_p = bitcast<f32>(slots[slot + TOP_P]);
  var least = 0u;
  if (top_k > 0u && top_k < VOCAB) { least = threshold(0u, f32(top_k), Weighing(false, top, coldness)); }
  if (top_p < 1.0) {
    let by = Weighing(true, top, coldness);
    let low = vec4<u32>(least);
    let all = weigh(array<vec4<u32>, 4>(low, low, low, low), by)[0].x;
    least = threshold(least, top_p * all, by);
  }
  let min_p = bitcast<f32>(slots[slot + MIN_P]);
  let deepest = select(-3e38, log(min_p), min_p > 0.0);
  let a = mix(slots[slot + SEED] ^ mix(slots[slot + SEED + 1u] ^ mix(slots[slot + COUNT])));
  let b = mix(a ^ 0x85ebca6bu);
  var high = -3e38;
  var winner = first;
  for (var id = thread; id < VOCAB; id += THREADS) {
    let value = logit(id);
    if (value > -1e30 && order(value) >= least && (value - top) * coldness >= deepest) {
      // Evenly spread in (0, 1]; fine-grained near 0, where the race is decided.
      let u = (f32(mix(mix(id ^ a) + b)) + 0.5) / 4294967296.0;
      let time = select(-log(max(1.0 - u, 1e-9)), u * (1.0 + 0.5 * u), u < 1e-3);
      let lead = (value - top) * coldness - log(time);
      if (lead > high) { high = lead; winner = id; }
    }
  }
  return best(high, winner);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32,
        @builtin(subgroup_id) subgroup_id: u32, @builtin(num_subgroups) subgroup_count: u32,
        @builtin(subgroup_invocation_id) lane_id: u32) {
  thread = index; subgroup = subgroup_id; subgroups = subgroup_count; lane = lane_id;
  base = group.x * VOCAB;
  let slot = picks[group.x].y * SLOT_WORDS;
  let phase = slots[slot + PHASE];
  let temperature = bitcast<f32>(slots[slot + TEMPERATURE]);
  banned = vec2<u32>(NONE, NONE);
  if (phase == SOLUTION) { banned = vec2<u32>(slots[slot + START], slots[slot + END]); }
  if (phase == IDLE) { banned.y = slots[slot + END]; }
  var id = 0u;
  if (phase != HANDING && phase != DONE) {
    id = greedy();
    if (temperature > 0.0) { id = race(slot, id); }
  }
  workgroupBarrier();
  if (thread == 0u) { take(group.x, slot, id); }
}
