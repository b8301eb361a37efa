fn read_four(row: u32, n: u32, width: u32) -> vec4<f32> { return x[row * width + n]; }
