// The tokens that a pick may draw, read by all threads together, eight a thread in each turn of a loop: so that eight
// loads are under way, and since drivers limit the turns.
override VOCAB: u32;
override THREADS: u32;  // 1024 at most
override FOURS: u32 = 4u * THREADS;
override TURN: u32 = 8u * THREADS;
@group(0) @binding(0) var<storage, read> logits: array<f32>;

const NONE = 0xffffffffu;
const BANNED = -1e30;  // stands for the logit of a token that may not be drawn
const LIST_MAX = 2048u;
var<workgroup> list: array<u32, LIST_MAX>;  // ids, in an order that differs from run to run
var<workgroup> tally: atomic<u32>;
var<workgroup> parts: array<f32, 256>;  // one a subgroup, which has 4 threads at least
var<workgroup> ids: array<u32, 256>;
var<private> thread: u32; var<private> subgroup: u32; var<private> subgroups: u32; var<private> lane: u32;
var<private> base: u32;         // where this pick's logits begin
var<private> banned: vec2<u32>;
var<private> listed: bool;      // whether the candidates are those of the list, or the whole vocabulary
var<private> candidates: u32;   // how many
var<private> least: u32;        // the order that a candidate must have
var<private> top: f32;          // the highest logit
var<private> highs: vec4<f32>;  // the highest logits that this thread met, each of another token

// A number of the same order as the float, ties of -0 and 0 aside.
fn order(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  return select(bits | 0x80000000u, ~bits, (bits >> 31u) == 1u);
}

fn passes(value: f32) -> bool { return value > BANNED && order(value) >= least; }

struct Four { ids: vec4<u32>, values: vec4<f32> }

// This thread's four of the candidates from `first` on. What is past the last of them is banned.
fn four(first: u32) -> Four {
  var at = vec4<u32>(first + thread) + vec4<u32>(0u, 1u, 2u, 3u) * THREADS;
  let within = at < vec4<u32>(candidates);
  if (listed) {
    let place = min(at, vec4<u32>(LIST_MAX - 1u));
    at = vec4<u32>(list[place.x], list[place.y], list[place.z], list[place.w]);
  }
  let place = base + min(at, vec4<u32>(VOCAB - 1u));
  let values = vec4<f32>(logits[place.x], logits[place.y], logits[place.z], logits[place.w]);
  // The first is false for NaN, too.
  let usable = (values > vec4<f32>(BANNED)) & (at != vec4<u32>(banned.x)) & (at != vec4<u32>(banned.y)) & within;
  return Four(at, select(vec4<f32>(BANNED), values, usable));
}

// Lists a token where there is room. How many do not fit is not of interest.
fn enlist(id: u32) {
  if (atomicLoad(&tally) > LIST_MAX) { return; }
  let at = atomicAdd(&tally, 1u);
  if (at < LIST_MAX) { list[at] = id; }
}

// Makes what was listed the candidates, where all of it had room.
fn adopt_list() {
  let count = atomicLoad(&tally);
  if (count <= LIST_MAX) { listed = true; candidates = count; }
}

// The sum over all threads, always in the same order.
fn add_in_order(own: f32) -> f32 {
  let sum = subgroupAdd(own);
  if (lane == 0u) { parts[subgroup] = sum; }
  workgroupBarrier();
  var all = 0.0;
  for (var s = 0u; s < subgroups; s++) { all += parts[s]; }
  workgroupBarrier();
  return all;
}

struct Scored { score: f32, id: u32 }

// The best over all threads, the lowest id of equals.
fn best(own: Scored) -> Scored {
  let high = subgroupMax(own.score);
  let first = subgroupMin(select(NONE, own.id, own.score == high));
  if (lane == 0u) { parts[subgroup] = high; ids[subgroup] = first; }
  workgroupBarrier();
  var winner = Scored(parts[0], ids[0]);
  for (var s = 1u; s < subgroups; s++) {
    if (parts[s] > winner.score || (parts[s] == winner.score && ids[s] < winner.id)) { winner = Scored(parts[s], ids[s]); }
  }
  workgroupBarrier();
  return winner;
}

// The likeliest of the candidates.
fn likeliest() -> Scored {
  highs = vec4<f32>(-2e30);
  var winners = vec4<u32>(NONE);
  for (var first = 0u; first < candidates; first += TURN) {
    let some = four(first);
    let more = four(first + FOURS);
    winners = select(winners, some.ids, some.values > highs);
    highs = max(highs, some.values);
    winners = select(winners, more.ids, more.values > highs);
    highs = max(highs, more.values);
  }
  let high = max(max(highs.x, highs.y), max(highs.z, highs.w));
  let firsts = select(vec4<u32>(NONE), winners, highs == vec4<f32>(high));
  return best(Scored(high, min(min(firsts.x, firsts.y), min(firsts.z, firsts.w))));
}
