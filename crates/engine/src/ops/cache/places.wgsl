// Where the n-th four numbers of a position lie, counted from where those of its head and block begin. What threads read at
// once lies together: of keys a four of all positions, of values up to eight fours of one.
fn key_place(position: u32, n: u32) -> u32 { return n * BLOCK + position % BLOCK; }
fn value_width(n: u32) -> u32 { return min(8u, HEAD_DIM / 4u - n / 8u * 8u); }
fn value_place(position: u32, n: u32) -> u32 { return n / 8u * 8u * BLOCK + position % BLOCK * value_width(n) + n % 8u; }
