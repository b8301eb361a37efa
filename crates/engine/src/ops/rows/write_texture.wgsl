fn write_four(row: u32, n: u32, width: u32, numbers: vec4<f32>) { textureStore(y, vec2<u32>(n, row), bitcast<vec4<u32>>(numbers)); }
