// chosen[r * USED + n] = the expert with the n-th largest number of row r, and its share: a softmax over the chosen ones' numbers, or
// over all. Of equal numbers the first comes first. One row per subgroup.
struct Immediates { rows: u32 }
var<immediate> i: Immediates;
override EXPERTS: u32;
override USED: u32;
override NORMALISED: bool;
@group(0) @binding(0) var<storage, read> numbers: array<f32>;
@group(0) @binding(1) var<storage, read_write> chosen: array<vec2<u32>>;
const NONE = 0xffffffffu;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_id) subgroup: u32,
        @builtin(num_subgroups) subgroups: u32, @builtin(subgroup_size) lanes: u32,
        @builtin(subgroup_invocation_id) lane: u32) {
  let row = group.x * subgroups + subgroup;
  if (row >= i.rows) { return; }
  var value = 0.0;  // the one that was chosen last, and its number
  var expert = NONE;
  var top = 0.0;
  var total = 0.0;
  for (var n = 0u; n < USED; n++) {
    var most = -3.4e38;
    var candidate = NONE;
    for (var e = lane; e < EXPERTS; e += lanes) {
      let v = numbers[row * EXPERTS + e];
      let is_left = n == 0u || v < value || (v == value && e > expert);
      if (is_left && (v > most || candidate == NONE)) { most = v; candidate = e; }
    }
    value = subgroupMax(most);
    // What is no number is larger than none, and some expert must be named.
    expert = min(subgroupMin(select(NONE, candidate, most == value)), EXPERTS - 1u);
    if (n == 0u) { top = value; }
    let share = exp(value - top);
    total += share;
    if (lane == 0u) { chosen[row * USED + n] = vec2<u32>(expert, bitcast<u32>(share)); }
  }
  if (!NORMALISED) {
    total = 0.0;
    for (var e = lane; e < EXPERTS; e += lanes) { total += exp(numbers[row * EXPERTS + e] - top); }
    total = subgroupAdd(total);
  }
  if (lane == 0u) {
    for (var n = row * USED; n < (row + 1u) * USED; n++) { chosen[n].y = bitcast<u32>(bitcast<f32>(chosen[n].y) / total); }
  }
}
