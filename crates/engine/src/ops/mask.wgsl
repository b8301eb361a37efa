// Takes tokens that may not come out of the logits that a token is drawn from: one bit a token, one thread a token, one row of
// workgroups a pick.
override VOCAB: u32;
override WORDS: u32;  // of one pick's bits
@group(0) @binding(0) var<storage, read> picks: array<u32>;
@group(0) @binding(1) var<storage, read> allowed: array<u32>;
@group(0) @binding(2) var<storage, read_write> logits: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let id = group.x * 256u + thread;
  if (id >= VOCAB) { return; }
  let word = allowed[group.y * WORDS + id / 32u];
  // Less than what the sampler takes for a logit.
  if (((word >> (id % 32u)) & 1u) == 0u) { logits[picks[group.y] * VOCAB + id] = -3e38; }
}
