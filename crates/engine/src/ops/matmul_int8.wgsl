// y[t][first + r] (+)= sum over k of w[r][k] * x[t][k], for few tokens, with x in bytes. A team of STRANDS threads computes ROWS rows for
// COLS tokens, a thread a strand of each; neighbours read neighbouring blocks. In which order all is added `matmul_int8_sums.wgsl`
// says; it depends neither on how many tokens or rows there are nor on the size of subgroups. Which tokens and which rows,
// `columns` says.
override TEAMS: u32;  // in a workgroup
const PADDED = 33u;   // neighbours write to different banks, and read from different ones
const RESULTS = ROWS * COLS;
var<workgroup> strands: array<f32, TEAMS * RESULTS * PADDED>;

@compute @workgroup_size(STRANDS * TEAMS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let lane = thread % STRANDS;
  let team = thread / STRANDS;
  let first = group.y * TEAMS * ROWS;
  var tokens: array<Columns, SETS>;
  for (var n = 0u; n < SETS; n++) { tokens[n] = columns(group.x * SETS + n); }
  if (first >= i.rows || tokens[0].y.x == NONE) { return; }
  let row = first + team * ROWS;
  let blocks = i.columns / 32u;
  // Rows past the end repeat the last one, and are not stored.
  var rows: array<u32, ROWS>;
  for (var r = 0u; r < ROWS; r++) { rows[r] = (tokens[0].base + min(row + r, i.rows - 1u)) * blocks; }
  var sums: array<f32, RESULTS>;
  for (var b = lane; b < blocks; b += STRANDS) {
    var low: array<vec4<u32>, COLS>;
    var high: array<vec4<u32>, COLS>;
    var unit: array<vec3<f32>, COLS>;
    for (var c = 0u; c < COLS; c++) {
      let source = tokens[c / 4u].x[c % 4u] * blocks;
      low[c] = x[2u * source + b];
      high[c] = x[2u * source + blocks + b];
      unit[c] = block_unit(x_scales[source + b]);
    }
    for (var r = 0u; r < ROWS; r++) {
      let block = load(rows[r] + b);
      let factor = block_factors(rows[r] + b);
      let left = half_bytes(block, 0u);
      let right = half_bytes(block, 1u);
      for (var c = 0u; c < COLS; c++) {
        sums[r * COLS + c] = add_block(sums[r * COLS + c], multiply(left, low[c]), multiply(right, high[c]), factor, unit[c]);
      }
    }
  }
  for (var n = 0u; n < RESULTS; n++) { strands[(team * RESULTS + n) * PADDED + lane] = sums[n]; }
  workgroupBarrier();
  for (var n = lane; n < RESULTS; n += STRANDS) {
    var sum = 0.0;
    for (var s = 0u; s < STRANDS; s++) { sum += strands[(team * RESULTS + n) * PADDED + s]; }
    let token = tokens[n % COLS / 4u].y[n % COLS % 4u];
    let at = row + n / COLS;
    if (token != NONE && at < i.rows) { store(token * i.stride + i.first + at, sum); }
  }
}
