// y[t][first + r] (+)= sum over k of w[r][k] * x[t][k], w being of blocks of 32. One lane computes 4 rows for COLS tokens (1, 4 or 8), in
// the order of k: no sum goes across lanes. What lanes share is the reading of x, which costs a software driver as
// much as eight products: of every 32 numbers each lane reads four, and hands them round.
// Which tokens and which rows, `columns` says. What the blocks of two rows are multiplied with, `two_factors` reads: rows in fours begin
// with even blocks.
override ADD: bool;
override LANES: u32; // in a workgroup; 8 or a multiple
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
var<private> p0: vec4<f32>; var<private> p1: vec4<f32>; var<private> p2: vec4<f32>; var<private> p3: vec4<f32>;
var<private> t0: vec4<f32>; var<private> t1: vec4<f32>; var<private> t2: vec4<f32>; var<private> t3: vec4<f32>;  // sums of x
var<private> s0: vec4<f32>; var<private> s1: vec4<f32>; var<private> s2: vec4<f32>; var<private> s3: vec4<f32>;
// The same of the second four tokens, where there are eight.
var<private> p4: vec4<f32>; var<private> p5: vec4<f32>; var<private> p6: vec4<f32>; var<private> p7: vec4<f32>;
var<private> t4: vec4<f32>; var<private> t5: vec4<f32>; var<private> t6: vec4<f32>; var<private> t7: vec4<f32>;
var<private> s4: vec4<f32>; var<private> s5: vec4<f32>; var<private> s6: vec4<f32>; var<private> s7: vec4<f32>;
var<private> q0: Block; var<private> q1: Block; var<private> q2: Block; var<private> q3: Block;

// So many times as large are the numbers that `raised` gives, and the sums of their products: a power of two, so that no bit is lost.
const RAISED = 16777216.0;

// The n-th four numbers of a block. Each byte stays at the top of its word: moving it down with its sign takes a step more.
fn raised(block: Block, n: u32) -> vec4<f32> {
  let four = bytes(block, n);
  let tops = vec4<u32>(four << 24u, four << 16u, four << 8u, four) & vec4<u32>(0xff000000u);
  return vec4<f32>(bitcast<vec4<i32>>(tops));
}

// The n-th four numbers of each row, times those of each token.
fn add(n: u32, z0: vec4<f32>, z1: vec4<f32>, z2: vec4<f32>, z3: vec4<f32>) {
  let m = mat4x4<f32>(raised(q0, n), raised(q1, n), raised(q2, n), raised(q3, n));  // a row of the weights is a column of m
  p0 += z0 * m;
  if (OFFSET) { t0 += z0; }
  if (COLS > 1u) {
    p1 += z1 * m; p2 += z2 * m; p3 += z3 * m;
    if (OFFSET) { t1 += z1; t2 += z2; t3 += z3; }
  }
}

// The same of the second four tokens. A driver finds out that it has the rows' numbers already.
fn add_more(n: u32, z4: vec4<f32>, z5: vec4<f32>, z6: vec4<f32>, z7: vec4<f32>) {
  let m = mat4x4<f32>(raised(q0, n), raised(q1, n), raised(q2, n), raised(q3, n));
  p4 += z4 * m; p5 += z5 * m; p6 += z6 * m; p7 += z7 * m;
  if (OFFSET) { t4 += z4; t5 += z5; t6 += z6; t7 += z7; }
}

fn total(v: vec4<f32>) -> f32 { return dot(v, vec4<f32>(1.0)); }

fn begin_part() {
  p0 = vec4<f32>(); p1 = vec4<f32>(); p2 = vec4<f32>(); p3 = vec4<f32>();
  t0 = vec4<f32>(); t1 = vec4<f32>(); t2 = vec4<f32>(); t3 = vec4<f32>();
  if (COLS > 4u) {
    p4 = vec4<f32>(); p5 = vec4<f32>(); p6 = vec4<f32>(); p7 = vec4<f32>();
    t4 = vec4<f32>(); t5 = vec4<f32>(); t6 = vec4<f32>(); t7 = vec4<f32>();
  }
}

// What was added so far is a part of the four rows' blocks: `f` are the factors of the first two, `g` those of the others.
fn end_part(f: vec4<f32>, g: vec4<f32>) {
  let scale = vec4<f32>(f.xz, g.xz);
  let lower = 1.0 / RAISED;
  s0 += p0 * lower * scale;
  if (COLS > 1u) { s1 += p1 * lower * scale; s2 += p2 * lower * scale; s3 += p3 * lower * scale; }
  if (COLS > 4u) {
    s4 += p4 * lower * scale; s5 += p5 * lower * scale; s6 += p6 * lower * scale; s7 += p7 * lower * scale;
  }
  if (OFFSET) {
    let offset = vec4<f32>(f.yw, g.yw);
    s0 += total(t0) * offset;
    if (COLS > 1u) { s1 += total(t1) * offset; s2 += total(t2) * offset; s3 += total(t3) * offset; }
    if (COLS > 4u) {
      s4 += total(t4) * offset; s5 += total(t5) * offset; s6 += total(t6) * offset; s7 += total(t7) * offset;
    }
  }
}

fn store(token: u32, row: u32, sums: vec4<f32>) {
  if (token == NONE) { return; }
  for (var r = 0u; r < 4u; r++) {
    if (row + r < i.rows) {
      let at = token * i.stride + i.first + row + r;
      if (ADD) { y[at] += sums[r]; } else { y[at] = sums[r]; }
    }
  }
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32,
        @builtin(subgroup_invocation_id) lane: u32) {
  let row = (group.x * LANES + thread) * 4u;
  // Only whole subgroups leave: a lane past the last row still has its share of x to read.
  let tokens = columns(group.y * SETS);
  var more = tokens;
  if (COLS > 4u) { more = columns(group.y * SETS + 1u); }
  if (row - lane * 4u >= i.rows || tokens.y.x == NONE) { return; }
  let blocks = i.columns / 32u;
  let width = i.columns / 4u;
  // Rows past the end repeat the last one; `store` drops them.
  let first = tokens.base + row; let end = tokens.base + i.rows - 1u;
  let o0 = origin(min(first, end), tokens.all, blocks); let o1 = origin(min(first + 1u, end), tokens.all, blocks);
  let o2 = origin(min(first + 2u, end), tokens.all, blocks); let o3 = origin(min(first + 3u, end), tokens.all, blocks);
  let own = lane & 7u;  // larger subgroups read the same again
  s0 = vec4<f32>(); s1 = vec4<f32>(); s2 = vec4<f32>(); s3 = vec4<f32>();
  s4 = vec4<f32>(); s5 = vec4<f32>(); s6 = vec4<f32>(); s7 = vec4<f32>();
  for (var b = 0u; b < blocks; b++) {
    let k = own + b * 8u;
    let v0 = read_four(tokens.x.x, k, width); var v1 = vec4<f32>(); var v2 = vec4<f32>(); var v3 = vec4<f32>();
    if (COLS > 1u) {
      v1 = read_four(tokens.x.y, k, width); v2 = read_four(tokens.x.z, k, width); v3 = read_four(tokens.x.w, k, width);
    }
    var v4 = vec4<f32>(); var v5 = vec4<f32>(); var v6 = vec4<f32>(); var v7 = vec4<f32>();
    if (COLS > 4u) {
      v4 = read_four(more.x.x, k, width); v5 = read_four(more.x.y, k, width);
      v6 = read_four(more.x.z, k, width); v7 = read_four(more.x.w, k, width);
    }
    let b0 = place(o0, b); let b1 = place(o1, b); let b2 = place(o2, b); let b3 = place(o3, b);
    q0 = load(b0); q1 = load(b1); q2 = load(b2); q3 = load(b3);
    begin_part();
    add(0u, subgroupBroadcast(v0, 0u), subgroupBroadcast(v1, 0u), subgroupBroadcast(v2, 0u), subgroupBroadcast(v3, 0u));
    add(1u, subgroupBroadcast(v0, 1u), subgroupBroadcast(v1, 1u), subgroupBroadcast(v2, 1u), subgroupBroadcast(v3, 1u));
    add(2u, subgroupBroadcast(v0, 2u), subgroupBroadcast(v1, 2u), subgroupBroadcast(v2, 2u), subgroupBroadcast(v3, 2u));
    add(3u, subgroupBroadcast(v0, 3u), subgroupBroadcast(v1, 3u), subgroupBroadcast(v2, 3u), subgroupBroadcast(v3, 3u));
    if (COLS > 4u) {
      add_more(0u, subgroupBroadcast(v4, 0u), subgroupBroadcast(v5, 0u), subgroupBroadcast(v6, 0u), subgroupBroadcast(v7, 0u));
      add_more(1u, subgroupBroadcast(v4, 1u), subgroupBroadcast(v5, 1u), subgroupBroadcast(v6, 1u), subgroupBroadcast(v7, 1u));
      add_more(2u, subgroupBroadcast(v4, 2u), subgroupBroadcast(v5, 2u), subgroupBroadcast(v6, 2u), subgroupBroadcast(v7, 2u));
      add_more(3u, subgroupBroadcast(v4, 3u), subgroupBroadcast(v5, 3u), subgroupBroadcast(v6, 3u), subgroupBroadcast(v7, 3u));
    }
    if (PARTS == 2u) { end_part(two_factors(b0, b1, 0u), two_factors(b2, b3, 0u)); begin_part(); }
    add(4u, subgroupBroadcast(v0, 4u), subgroupBroadcast(v1, 4u), subgroupBroadcast(v2, 4u), subgroupBroadcast(v3, 4u));
    add(5u, subgroupBroadcast(v0, 5u), subgroupBroadcast(v1, 5u), subgroupBroadcast(v2, 5u), subgroupBroadcast(v3, 5u));
    add(6u, subgroupBroadcast(v0, 6u), subgroupBroadcast(v1, 6u), subgroupBroadcast(v2, 6u), subgroupBroadcast(v3, 6u));
    add(7u, subgroupBroadcast(v0, 7u), subgroupBroadcast(v1, 7u), subgroupBroadcast(v2, 7u), subgroupBroadcast(v3, 7u));
    if (COLS > 4u) {
      add_more(4u, subgroupBroadcast(v4, 4u), subgroupBroadcast(v5, 4u), subgroupBroadcast(v6, 4u), subgroupBroadcast(v7, 4u));
      add_more(5u, subgroupBroadcast(v4, 5u), subgroupBroadcast(v5, 5u), subgroupBroadcast(v6, 5u), subgroupBroadcast(v7, 5u));
      add_more(6u, subgroupBroadcast(v4, 6u), subgroupBroadcast(v5, 6u), subgroupBroadcast(v6, 6u), subgroupBroadcast(v7, 6u));
      add_more(7u, subgroupBroadcast(v4, 7u), subgroupBroadcast(v5, 7u), subgroupBroadcast(v6, 7u), subgroupBroadcast(v7, 7u));
    }
    end_part(two_factors(b0, b1, PARTS - 1u), two_factors(b2, b3, PARTS - 1u));
  }
  store(tokens.y.x, row, s0);
  if (COLS > 1u) { store(tokens.y.y, row, s1); store(tokens.y.z, row, s2); store(tokens.y.w, row, s3); }
  if (COLS > 4u) {
    store(more.y.x, row, s4); store(more.y.y, row, s5); store(more.y.z, row, s6); store(more.y.w, row, s7);
  }
}
