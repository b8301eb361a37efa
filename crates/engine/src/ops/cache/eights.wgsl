// Numbers go in eights, of TEXELS texels each.
fn block_width() -> u32 { return BLOCK * (HEAD_DIM / 8u) * TEXELS; }

// Where the n-th eight of a position lies, from where its head and block begin. What lanes read at once lies together: of keys an eight of
// all positions, of values the eights of one.
fn key_place(position: u32, n: u32) -> u32 { return (n * BLOCK + position % BLOCK) * TEXELS; }
fn value_place(position: u32, n: u32) -> u32 { return (position % BLOCK * (HEAD_DIM / 8u) + n) * TEXELS; }
