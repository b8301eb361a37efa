// Puts places that chose the same expert into teams of up to four, so that they share one reading of its weights. Who is in a team with
// whom is left to chance, and changes no result. One workgroup; places past the end of a team are NONE.
struct Immediates { places: u32, teams: u32 }
var<immediate> i: Immediates;
override EXPERTS: u32;
@group(0) @binding(0) var<storage, read> chosen: array<vec2<u32>>;  // expert, and its share
@group(0) @binding(1) var<storage, read_write> teams: array<u32>;   // four places each
const NONE = 0xffffffffu;
const THREADS = 64u;
// How many places chose an expert; then where its next one goes.
var<workgroup> counts: array<atomic<u32>, EXPERTS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) thread: u32) {
  for (var e = thread; e < EXPERTS; e += THREADS) { atomicStore(&counts[e], 0u); }
  for (var n = thread; n < i.teams * 4u; n += THREADS) { teams[n] = NONE; }
  workgroupBarrier();
  storageBarrier();
  for (var n = thread; n < i.places; n += THREADS) { atomicAdd(&counts[chosen[n].x], 1u); }
  workgroupBarrier();
  if (thread == 0u) {
    var next = 0u;
    for (var e = 0u; e < EXPERTS; e++) {
      let count = atomicLoad(&counts[e]);
      atomicStore(&counts[e], next);
      next += (count + 3u) / 4u * 4u;
    }
  }
  workgroupBarrier();
  for (var n = thread; n < i.places; n += THREADS) { teams[atomicAdd(&counts[chosen[n].x], 1u)] = n; }
}
