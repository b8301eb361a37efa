// Finds the likeliest tokens that weigh enough together, for top-k and for top-p. Those tied with the last are kept.
// Tokens are weighed in bins by how far they are below the top. The bin in which enough is reached is binned again, by the
// orders of its logits, until a single order is left. What fits the list is read from there.
// Weights are whole numbers: their sum does not depend on the order in which threads come.
//
// The vocabulary is read once for what all weigh (for top-p only), once for the first bins, and 4 times at most for the
// orders, which have 32 bits, of which 10 are told apart at a time. Where top-k reads it a second time for the first bins,
// the orders are read from the list.
const BINS = 1024u;
const BIN_BITS = 10u;
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

struct Span { first: u32, last: u32 }

// Which tokens are weighed, and where: by their distance, those up to a bin. Or by their order, those of one bin that have
// one of these orders: so many bits together, the highest first.
struct Binning { by: Weighing, by_order: bool, bin: u32, orders: Span, bits: u32 }

fn put(id: u32, value: f32, to: Binning) {
  if (!passes(value)) { return; }
  let bin = bin_of(value, to.by);
  var at = bin;
  if (to.by_order) {
    let own = order(value);
    if (bin != to.bin || own < to.orders.first || own > to.orders.last) { return; }
    at = (to.orders.last - own) >> to.bits;
  } else if (bin > to.bin) {
    return;
  }
  atomicAdd(&bins[at], weight(value, bin, to.by));
  enlist(id);
}

fn put_four(some: Four, to: Binning) {
  put(some.ids.x, some.values.x, to);
  put(some.ids.y, some.values.y, to);
  put(some.ids.z, some.values.z, to);
  put(some.ids.w, some.values.w, to);
}

fn clear(with_list: bool) {
  workgroupBarrier();
  for (var bin = thread; bin < BINS; bin += THREADS) { atomicStore(&bins[bin], 0u); }
  if (thread == 0u) { atomicStore(&tally, select(LIST_MAX + 1u, 0u, with_list)); }
  workgroupBarrier();
}

fn bin_worth(at: u32, among: Binning) -> f32 {
  return worth(atomicLoad(&bins[at]), select(at, among.bin, among.by_order), among.by);
}

fn sum_groups(among: Binning) {
  workgroupBarrier();
  for (var group = thread; group < BINS / GROUP; group += THREADS) {
    var sum = 0.0;
    for (var n = 0u; n < GROUP; n++) { sum += bin_worth(group * GROUP + n, among); }
    groups[group] = sum;
  }
  workgroupBarrier();
}

// Weighs in bins either the candidates or no more than the highest tokens that each thread met. What is weighed of the
// vocabulary is listed, too, and becomes the candidates where the list has room for it.
fn fill(highest_only: bool, to: Binning) {
  clear(!listed && !highest_only && (to.by_order || to.bin < BINS));
  for (var first = 0u; first < select(candidates, 1u, highest_only); first += TURN) {
    var some = four(first);
    var more = four(first + FOURS);
    if (highest_only) {
      some.values = highs;
      more.values = vec4<f32>(BANNED);
    }
    put_four(some, to);
    put_four(more, to);
  }
  sum_groups(to);
  adopt_list();
}

fn all_bins() -> f32 {
  var sum = 0.0;
  for (var group = 0u; group < BINS / GROUP; group++) { sum += groups[group]; }
  return sum;
}

// The bin in which enough is reached, or BINS where it is not, and the weight of those before it.
struct Found { bin: u32, above: f32 }

fn find(enough: f32, among: Binning) -> Found {
  var above = 0.0;
  var group = 0u;
  while (group < BINS / GROUP && above + groups[group] < enough) {
    above += groups[group];
    group++;
  }
  var found = Found(BINS, above);
  if (group == BINS / GROUP) { return found; }
  for (var bin = group * GROUP; bin < (group + 1u) * GROUP; bin++) {
    let own = bin_worth(bin, among);
    // The bins may add up to a little less than their group did: then it is the last of them.
    if (own > 0.0 && (above < enough || found.bin == BINS)) { found = Found(bin, above); }
    above += own;
  }
  return found;
}

// All orders that a logit in a bin may have, and some more, since drivers divide as they like.
fn orders(bin: u32, by: Weighing) -> Span {
  let highest = order(top - start_of(max(bin, 1u) - 1u) / by.coldness);
  let lowest = order(top - start_of(bin + 2u) / by.coldness);
  return Span(select(lowest, order(BANNED), bin == BINS - 1u), select(highest, order(top), bin <= 1u));
}

// The highest order in the bin at which enough is reached.
fn search(found: Found, enough: f32, by: Weighing) -> u32 {
  var span = orders(found.bin, by);
  var missing = enough - found.above;
  while (span.first < span.last) {
    let bits = max(32u - countLeadingZeros(span.last - span.first), BIN_BITS) - BIN_BITS;
    let binning = Binning(by, true, found.bin, span, bits);
    fill(false, binning);
    // The parts of a bin may add up to a little less than it did.
    let part = find(min(missing, all_bins()), binning);
    // Of a bin that is empty now, since the driver rounded otherwise than before, nothing is learned.
    if (part.bin == BINS) { return least; }
    missing -= part.above;
    span.last -= part.bin << bits;
    span.first = span.last - min(span.last - span.first, (1u << bits) - 1u);
  }
  return span.first;
}

fn probability(value: f32, by: Weighing) -> f32 { return select(0.0, exp(-distance(value, by)), passes(value)); }

fn probability_of_four(values: vec4<f32>, by: Weighing) -> f32 {
  return probability(values.x, by) + probability(values.y, by) + probability(values.z, by) + probability(values.w, by);
}

// What all candidates weigh together. It is the same in each run for the whole vocabulary only.
fn weigh_vocabulary(by: Weighing) -> f32 {
  var own = 0.0;
  for (var first = 0u; first < candidates; first += TURN) {
    let some = four(first);
    let more = four(first + FOURS);
    own += probability_of_four(some.values, by) + probability_of_four(more.values, by);
  }
  return add_in_order(own);
}

// Whether the list certainly has room for all tokens up to a bin.
fn have_room(found: Found, among: Binning) -> bool {
  return !among.by.by_probability && found.above + bin_worth(found.bin, among) <= f32(LIST_MAX);
}

// Keeps the likeliest that weigh enough together: so many, or a part of what all weigh. Keeps all where they weigh less.
fn narrow(wanted: f32, by: Weighing) {
  let was_listed = listed;
  var enough = wanted;
  if (by.by_probability && !listed) { enough *= weigh_vocabulary(by); }
  var found = Found(BINS, 0.0);
  // First of the highest tokens that each thread met: where those of the first bins weigh enough already, no token of the
  // other bins is among the wanted. Then of all that may be. Then once more, where only now it is known that the list has
  // room.
  for (var round = select(0u, 1u, listed); round < 3u; round++) {
    let binning = Binning(by, false, found.bin, Span(0u, 0u), 0u);
    if (round == 2u && (listed || !have_room(found, binning))) { break; }
    fill(round == 0u, binning);
    if (by.by_probability && was_listed) { enough *= all_bins(); }
    found = find(enough, binning);
    if (round > 0u && found.bin == BINS) { return; }
  }
  let all_listed = listed;
  least = search(found, enough, by);
  if (!all_listed) { listed = false; candidates = VOCAB; }
}
