// Draws one token for each pick, one workgroup a pick, and moves its slot's budget machine by it. The draw is a race:
// every token i that passes top-k, top-p and min-p runs with rate exp(logit / temperature), on a random number made of
// (seed, how many tokens this slot has drawn, i) alone.
//
// Lavapipe ends a thread's loops after 65,536 turns in all, without a word. A draw reads the vocabulary 13 times at most:
// for the likeliest, for the race, for top-k 5 times and for top-p 6 times (see threshold.wgsl). For each of 8 threads that
// is 13 * 4,096 turns at 262,144 tokens. Besides, threshold.wgsl takes fewer than 400 turns for each of 12 times that it bins:
// 58,048 turns in all.
@group(0) @binding(1) var<storage, read> picks: array<vec2<u32>>;  // row, slot

fn mix(value: u32) -> u32 {
  let state = value * 747796405u + 2891336453u;
  let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
  return (word >> 22u) ^ word;
}

// How a race is run: on which random numbers, and how far below the top a token may start.
struct Race { a: u32, b: u32, coldness: f32, deepest: f32 }

const LUCK_MAX = 23.0;  // the most that luck can add to a lead

fn lead(id: u32, behind: f32, race: Race) -> f32 {
  // Evenly spread in (0, 1]; fine-grained near 0, where the race is decided.
  let u = (f32(mix(mix(id ^ race.a) + race.b)) + 0.5) / 4294967296.0;
  let time = select(-log(max(1.0 - u, 1e-9)), u * (1.0 + 0.5 * u), u < 1e-3);
  return behind - log(time);
}

// The first of two runners, where the second may not be allowed to run.
fn faster(first: Scored, id: u32, value: f32, race: Race) -> Scored {
  let behind = (value - top) * race.coldness;
  if (!passes(value) || behind < race.deepest || behind + LUCK_MAX < first.score) { return first; }
  let own = lead(id, behind, race);
  if (own > first.score) { return Scored(own, id); }
  return first;
}

fn fastest(first: Scored, some: Four, race: Race) -> Scored {
  var fast = faster(first, some.ids.x, some.values.x, race);
  fast = faster(fast, some.ids.y, some.values.y, race);
  fast = faster(fast, some.ids.z, some.values.z, race);
  return faster(fast, some.ids.w, some.values.w, race);
}

fn run(race: Race, likeliest: u32) -> u32 {
  var first = Scored(lead(likeliest, 0.0, race), likeliest);
  for (var at = 0u; at < candidates; at += TURN) {
    let some = four(at);
    let more = four(at + FOURS);
    first = fastest(fastest(first, some, race), more, race);
  }
  return best(first).id;
}

fn draw(slot: u32, likeliest: u32) -> u32 {
  let coldness = 1.0 / bitcast<f32>(slots[slot + TEMPERATURE]);
  let top_k = slots[slot + TOP_K];
  // Enough for the likeliest at least.
  let top_p = max(bitcast<f32>(slots[slot + TOP_P]), 1e-9);
  // A loop, so that drivers translate so much code once: first for top-k, then for top-p.
  for (var step = 0u; step < 2u; step++) {
    let by_probability = step == 1u;
    let wanted = select(f32(select(VOCAB, top_k, top_k > 0u)), top_p, by_probability);
    let all = select(f32(VOCAB), 1.0, by_probability);
    let by = Weighing(by_probability, select(1.0, coldness, by_probability));
    if (wanted < all) { narrow(wanted, by); }
  }
  let min_p = bitcast<f32>(slots[slot + MIN_P]);
  let deepest = select(-3e38, log(min_p), min_p > 0.0);
  let a = mix(slots[slot + SEED] ^ mix(slots[slot + SEED + 1u] ^ mix(slots[slot + COUNT])));
  return run(Race(a, mix(a ^ 0x85ebca6bu), coldness, deepest), likeliest);
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
  candidates = VOCAB;
  var id = 0u;
  if (phase != HANDING && phase != DONE) {
    let first = likeliest();
    id = first.id;
    top = first.score;
    if (temperature > 0.0) { id = draw(slot, id); }
  }
  workgroupBarrier();
  if (thread == 0u) { take(group.x, slot, id); }
}
