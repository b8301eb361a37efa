// Every token is multiplied with the same rows. Part of the kernels for few tokens.
struct Immediates { rows: u32, tokens: u32, columns: u32, stride: u32, first: u32 }
var<immediate> i: Immediates;

// Four tokens, or one where COLS is 1: rows of x; rows of y, NONE where nothing is stored; the first row of the weights, and how
// many there are.
struct Columns { x: vec4<u32>, y: vec4<u32>, base: u32, all: u32 }
const NONE = 0xffffffffu;

fn columns(group: u32) -> Columns {
  let tokens = vec4<u32>(group * min(COLS, 4u)) + vec4<u32>(0u, 1u, 2u, 3u);
  // Those past the end repeat the last one, and are not stored.
  let end = vec4<u32>(i.tokens);
  return Columns(min(tokens, end - 1u), select(tokens, vec4<u32>(NONE), tokens >= end), 0u, i.rows);
}
