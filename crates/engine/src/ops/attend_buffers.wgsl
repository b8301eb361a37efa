// What attention goes over: the part that `attend.wgsl` and `attend_lanes.wgsl` have in common.
struct Immediates { rows: u32, first: u32 }
var<immediate> i: Immediates;
override HEADS: u32;
override KV_HEADS: u32;
override HEAD_DIM: u32;
override BLOCK: u32;     // 16
override BLOCKS: u32;    // blocks in a slot's table
override TOGETHER: u32;  // heads that a workgroup does, 4 at most
override TEAMS: u32;     // workgroups that do the heads of one key
@group(0) @binding(3) var<storage, read> rows: array<vec4<u32>>;  // token, slot, position
@group(0) @binding(4) var<storage, read> blocks: array<u32>;
@group(0) @binding(6) var<storage, read_write> shares: array<vec4<f32>>;
