// Finds the likeliest tokens that weigh enough together, for top-k and for top-p. Those tied with the last are kept.
// Tokens are weighed in bins by how far they are below the top. Then only the bin in which enough is reached is searched.
// Weights are whole numbers: their sum does not depend on the order in which threads come.
const BINS = 1024u;
const GROUP = 32u;  // bins whose weights are summed first
const STEPS = 4096u;  // to a distance of 1
const FIRST = 0x45800000u;  // the bits of 4096.0
var<workgroup> bins: array<atomic<u32>, BINS>;
var<workgroup> groups: array<f32, BINS / GROUP>;

// A token weighs 1, or its probability times a constant. A logit that is less by 1 is further from the top by `coldness`.
struct Weighing { by_probability: bool, coldness: f32 }

fn distance(value: f32, by: Weighing) -> f32 { return (top - value) * by.coldness; }

// The bin, by the bits of the distance plus 1: so bins are narrower near the top. The sum is of whole numbers, since a
// driver may take floats in another order, and with one rounding less the top would come out below itself.
fn bin_of(value: f32, by: Weighing) -> u32 {
  let steps = u32(clamp(distance(value, by) * f32(STEPS), 0.0, 1e9)) + STEPS;
  return min((bitcast<u32>(f32(steps)) - FIRST) >> 16u, BINS - 1u);
}

// The least distance in a bin.
fn start_of(bin: u32) -> f32 { return bitcast<f32>((bin << 16u) + FIRST) / f32(STEPS) - 1.0; }

// The whole number for the probability that a token has at its bin's start: as large as it can be without overflow.
fn scale() -> f32 { return 4e9 / f32(VOCAB); }

fn weight(value: f32, bin: u32, by: Weighing) -> u32 {
  if (!by.by_probability) { return 1u; }
  return u32(exp(start_of(bin) - distance(value, by)) * scale() + 0.5);
}

// What the whole numbers of a bin stand for.
fn worth(weight: u32, bin: u32, by: Weighing) -> f32 {
  if (!by.by_probability) { return f32(weight); }
  return f32(weight) * (exp(-start_of(bin)) / scale());
}

fn clear() {
  for (var bin = thread; bin < BINS; bin += THREADS) { atomicStore(&bins[bin], 0u); }
  workgroupBarrier();
}

fn put(value: f32, by: Weighing) {
  if (passes(value)) {
    let bin = bin_of(value, by);
    atomicAdd(&bins[bin], weight(value, bin, by));
  }
}

fn bin_worth(bin: u32, by: Weighing) -> f32 { return worth(atomicLoad(&bins[bin]), bin, by); }

fn sum_groups(by: Weighing) {
  workgroupBarrier();
  for (var group = thread; group < BINS / GROUP; group += THREADS) {
    var sum = 0.0;
    for (var n = 0u; n < GROUP; n++) { sum += bin_worth(group * GROUP + n, by); }
    groups[group] = sum;
  }
  workgroupBarrier();
}

// Weighs in bins either all candidates or no more than the highest tokens that each thread met.
fn fill(highest_only: bool, by: Weighing) {
  clear();
  for (var first = 0u; first < select(candidates, 1u, highest_only); first += 4u * THREADS) {
    var values = highs;
    if (!highest_only) { values = four(first).values; }
    put(values.x, by); put(values.y, by); put(values.z, by); put(values.w, by);
  }
  sum_groups(by);
}

fn all_bins() -> f32 {
  var sum = 0.0;
  for (var group = 0u; group < BINS / GROUP; group++) { sum += groups[group]; }
  return sum;
}

// The bin in which enough is reached, or BINS where it is not, and the weight of those before it.
struct Found { bin: u32, above: f32 }

fn find(enough: f32, by: Weighing) -> Found {
  var above = 0.0;
  var group = 0u;
  while (group < BINS / GROUP && above + groups[group] < enough) {
    above += groups[group];
    group++;
  }
  var found = Found(BINS, above);
  if (group == BINS / GROUP) { return found; }
  for (var bin = group * GROUP; bin < (group + 1u) * GROUP; bin++) {
    let own = bin_worth(bin, by);
    // The bins may add up to a little less than their group did: then it is the last of them.
    if (own > 0.0 && (above < enough || found.bin == BINS)) { found = Found(bin, above); }
    above += own;
  }
  return found;
}

struct Span { first: u32, last: u32 }

fn list_one(id: u32, value: f32, span: Span, by: Weighing) {
  let bin = bin_of(value, by);
  // How many do not fit is not of interest.
  if (bin >= span.first && bin <= span.last && passes(value) && atomicLoad(&tally) <= LIST_MAX) {
    let at = atomicAdd(&tally, 1u);
    if (at < LIST_MAX) { list[at] = id; }
  }
}

// Makes the vocabulary's tokens in some bins the candidates, where the list has room for them.
fn list_tokens(span: Span, by: Weighing) {
  if (thread == 0u) { atomicStore(&tally, 0u); }
  workgroupBarrier();
  for (var first = 0u; first < candidates; first += 4u * THREADS) {
    let some = four(first);
    list_one(some.ids.x, some.values.x, span, by);
    list_one(some.ids.y, some.values.y, span, by);
    list_one(some.ids.z, some.values.z, span, by);
    list_one(some.ids.w, some.values.w, span, by);
  }
  workgroupBarrier();
  let count = atomicLoad(&tally);
  workgroupBarrier();
  if (count <= LIST_MAX) { listed = true; candidates = count; }
}

fn is_in(bin: u32, value: f32, by: Weighing) -> bool { return passes(value) && bin_of(value, by) == bin; }

fn weight_from(lowest_order: u32, bin: u32, value: f32, by: Weighing) -> u32 {
  if (order(value) < lowest_order || !is_in(bin, value, by)) { return 0u; }
  return weight(value, bin, by);
}

// What those tokens of a bin weigh that have at least an order.
fn weigh(lowest_order: u32, bin: u32, by: Weighing) -> f32 {
  var own = 0u;
  for (var first = 0u; first < candidates; first += 4u * THREADS) {
    let values = four(first).values;
    own += weight_from(lowest_order, bin, values.x, by) + weight_from(lowest_order, bin, values.y, by)
        + weight_from(lowest_order, bin, values.z, by) + weight_from(lowest_order, bin, values.w, by);
  }
  return worth(add(own), bin, by);
}

fn widen(span: Span, bin: u32, value: f32, by: Weighing) -> Span {
  if (!is_in(bin, value, by)) { return span; }
  return Span(min(span.first, order(value)), max(span.last, order(value)));
}

// The lowest and the highest order in a bin.
fn orders(bin: u32, by: Weighing) -> Span {
  var own = Span(NONE, 0u);
  for (var first = 0u; first < candidates; first += 4u * THREADS) {
    let values = four(first).values;
    own = widen(own, bin, values.x, by);
    own = widen(own, bin, values.y, by);
    own = widen(own, bin, values.z, by);
    own = widen(own, bin, values.w, by);
  }
  return Span(lowest(own.first), ~lowest(~own.last));
}

// The highest order in the bin at which enough is reached.
fn search(found: Found, enough: f32, by: Weighing) -> u32 {
  let span = orders(found.bin, by);
  var low = span.first;
  var high = span.last;
  while (low < high) {
    let middle = high - (high - low) / 2u;
    if (found.above + weigh(middle, found.bin, by) >= enough) { low = middle; } else { high = middle - 1u; }
  }
  // Of a bin that is empty now, since the driver rounded otherwise than before, nothing is learned.
  return select(low, least, low == NONE);
}

fn probability(value: f32, by: Weighing) -> f32 { return select(0.0, exp(-distance(value, by)), passes(value)); }

// What all candidates weigh together. It is the same in each run for the whole vocabulary only.
fn weigh_vocabulary(by: Weighing) -> f32 {
  var own = 0.0;
  for (var first = 0u; first < candidates; first += 4u * THREADS) {
    let values = four(first).values;
    own += probability(values.x, by) + probability(values.y, by) + probability(values.z, by) + probability(values.w, by);
  }
  return add_in_order(own);
}

// Keeps the likeliest that weigh enough together: so many, or a part of what all weigh. Keeps all where they weigh less.
fn narrow(wanted: f32, by: Weighing) {
  let was_listed = listed;
  var enough = wanted;
  if (by.by_probability && !listed) { enough *= weigh_vocabulary(by); }
  var found: Found;
  // First of the highest tokens that each thread met: where those of the first bins weigh enough already, no token of the
  // other bins is among the wanted. Then of all, which are few if that went well.
  for (var round = select(0u, 1u, listed); round < 2u; round++) {
    fill(round == 0u, by);
    if (by.by_probability && was_listed) { enough *= all_bins(); }
    found = find(enough, by);
    if (!listed && found.bin < BINS) { list_tokens(Span(0u, found.bin), by); }
  }
  if (found.bin == BINS) { return; }
  let all_listed = listed;
  // Where the list has no room for all, it may have room for those of the bin.
  if (!listed) { list_tokens(Span(found.bin, found.bin), by); }
  least = search(found, enough, by);
  if (!all_listed) { listed = false; candidates = VOCAB; }
}
