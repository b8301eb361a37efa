// Changes single logits before tokens are drawn: a repeated token's becomes less likely by a factor, and every one can be
// lowered or raised. One entry a thread; no two have the same place.
struct Immediates { entries: u32 }
var<immediate> i: Immediates;
@group(0) @binding(0) var<storage, read> entries: array<vec4<u32>>;  // place, divisor, what is taken off
@group(0) @binding(1) var<storage, read_write> logits: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let at = (group.y * groups.x + group.x) * 64u + thread;
  if (at >= i.entries) { return; }
  let entry = entries[at];
  let divisor = bitcast<f32>(entry.y);
  let logit = logits[entry.x];
  // A negative logit is divided by multiplying it: both ways it becomes less.
  logits[entry.x] = select(logit * divisor, logit / divisor, logit > 0.0) - bitcast<f32>(entry.z);
}
