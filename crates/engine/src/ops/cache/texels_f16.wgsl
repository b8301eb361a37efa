// Numbers in 16 bits, two in a word. What is larger than they can be is the largest.
const TEXELS = 1u;
fn half_words(v: vec4<f32>) -> vec2<u32> {
  let most = vec4<f32>(65504.0);
  let kept = clamp(v, -most, most);
  return vec2<u32>(pack2x16float(kept.xy), pack2x16float(kept.zw));
}
fn first_texel(eight: Eight) -> vec4<u32> { return vec4<u32>(half_words(eight.low), half_words(eight.high)); }
fn second_texel(eight: Eight) -> vec4<u32> { return vec4<u32>(); }
fn unpack_eight(first: vec4<u32>, second: vec4<u32>) -> Eight {
  let low = vec4<f32>(unpack2x16float(first.x), unpack2x16float(first.y));
  return Eight(low, vec4<f32>(unpack2x16float(first.z), unpack2x16float(first.w)));
}
