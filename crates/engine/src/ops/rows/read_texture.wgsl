fn read_four(row: u32, n: u32, width: u32) -> vec4<f32> { return bitcast<vec4<f32>>(textureLoad(x, vec2<u32>(n, row))); }
