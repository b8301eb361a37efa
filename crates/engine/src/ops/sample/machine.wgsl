// A slot's budget machine, moved by a token: the one of phases.rs.
override SLOT_WORDS: u32;
@group(0) @binding(2) var<storage, read_write> slots: array<u32>;
@group(0) @binding(3) var<storage, read_write> drawn: array<vec4<u32>>;  // token, role, phase afterwards, what was sampled

// Words of a slot; sample.rs writes them.
const PHASE = 0u; const THOUGHT = 1u; const THOUGHT_MAX = 2u; const HANDED = 3u; const HAND_OFF = 4u;
const SOLVED = 5u; const SOLUTION_MAX = 6u; const START = 7u; const END = 8u; const LAST = 9u; const COUNT = 10u;
const TEMPERATURE = 11u; const TOP_K = 12u; const TOP_P = 13u; const SEED = 14u; const EOS_COUNT = 16u; const EOS = 17u;
const SOLUTION_MOST = 25u; const MIN_P = 26u; const HAND_OFF_IDS = 32u;
// Phases, then roles.
const IDLE = 0u; const THINKING = 1u; const HANDING = 2u; const SOLUTION = 3u; const DONE = 4u;
const AS_THOUGHT = 0u; const AS_TAG = 1u; const AS_HAND_OFF = 2u; const AS_SOLUTION = 3u; const AS_END = 4u;


fn is_end_of_text(slot: u32, id: u32) -> bool {
  for (var n = 0u; n < slots[slot + EOS_COUNT]; n++) {
    if (slots[slot + EOS + n] == id) { return true; }
  }
  return false;
}

fn solve(slot: u32, id: u32) -> u32 {
  if (is_end_of_text(slot, id)) {
    slots[slot + PHASE] = DONE;
    return AS_END;
  }
  slots[slot + PHASE] = SOLUTION;
  slots[slot + SOLVED] += 1u;
  return AS_SOLUTION;
}

fn think(slot: u32, id: u32) -> u32 {
  if (id == slots[slot + END]) {
    slots[slot + PHASE] = SOLUTION;
    return AS_TAG;
  }
  if (is_end_of_text(slot, id)) {
    slots[slot + PHASE] = DONE;
    return AS_END;
  }
  slots[slot + THOUGHT] += 1u;
  return AS_THOUGHT;
}

// What the thought left of its budget goes to the solution, up to its most.
fn solution_max(slot: u32) -> u32 {
  let left = slots[slot + THOUGHT_MAX] - min(slots[slot + THOUGHT], slots[slot + THOUGHT_MAX]);
  let own = slots[slot + SOLUTION_MAX];
  return own + min(left, slots[slot + SOLUTION_MOST] - own);
}

fn settle(slot: u32) {
  if (slots[slot + PHASE] == THINKING && slots[slot + THOUGHT] >= slots[slot + THOUGHT_MAX]) { slots[slot + PHASE] = HANDING; }
  if (slots[slot + PHASE] == HANDING && slots[slot + HANDED] >= slots[slot + HAND_OFF]) { slots[slot + PHASE] = SOLUTION; }
  if (slots[slot + PHASE] == SOLUTION && slots[slot + SOLVED] >= solution_max(slot)) { slots[slot + PHASE] = DONE; }
}

fn take(pick: u32, slot: u32, sampled: u32) {
  var id = sampled;
  var role = AS_END;
  // A text that ends inside its thought: the hand-off goes in where the end would be.
  if (slots[slot + PHASE] == THINKING && id != slots[slot + END] && slots[slot + HAND_OFF] > 0u
      && is_end_of_text(slot, id)) { slots[slot + PHASE] = HANDING; }
  switch (slots[slot + PHASE]) {
    case IDLE: {
      if (id == slots[slot + START]) { slots[slot + PHASE] = THINKING; role = AS_TAG; } else { role = solve(slot, id); }
    }
    case THINKING: { role = think(slot, id); }
    case HANDING: {
      id = slots[slot + HAND_OFF_IDS + slots[slot + HANDED]];
      slots[slot + HANDED] += 1u;
      role = AS_HAND_OFF;
    }
    case SOLUTION: { role = solve(slot, id); }
    default: {}
  }
  settle(slot);
  slots[slot + LAST] = id;
  slots[slot + COUNT] += 1u;
  drawn[pick] = vec4<u32>(id, role, slots[slot + PHASE], sampled);
}
