fn write_four(row: u32, n: u32, width: u32, numbers: vec4<f32>) { y[row * width + n] = numbers; }
