//! What stored numbers stand for, number by number: the slow, obvious reading that kernels are tested against.

use half::{bf16, f16};

use crate::TensorType;

/// What an index of [`TensorType::Iq4Nl`] stands for, before the scale.
pub(super) const IQ4_NL_VALUES: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// Twice what an index of [`TensorType::Mxfp4`] stands for, before the scale.
pub(super) const MXFP4_VALUES: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// All numbers of a whole number of blocks.
pub fn decode(kind: TensorType, bytes: &[u8]) -> Vec<f64> {
    let block =
        |block: &[u8]| -> Vec<f64> { (0..kind.block_numbers()).map(|n| number(kind, block, n)).collect() };
    bytes.chunks_exact(kind.block_bytes()).flat_map(block).collect()
}

/// Number `n` of a block.
fn number(kind: TensorType, block: &[u8], n: usize) -> f64 {
    let half = |at: usize| f64::from(f16::from_le_bytes([block[at], block[at + 1]]).to_f32());
    let signed = |byte: u8| f64::from(i8::from_le_bytes([byte]));
    // The first half of the numbers in the low bits of each byte, the second in the high ones.
    let nibble =
        |from: usize| usize::from(if n < 16 { block[from + n] & 15 } else { block[from + n - 16] >> 4 });
    let fifth = |from: usize| usize::from(block[from + n / 8] >> (n % 8) & 1) << 4;
    match kind {
        TensorType::F32 => f64::from(f32::from_le_bytes([block[0], block[1], block[2], block[3]])),
        TensorType::F16 => half(0),
        TensorType::Bf16 => f64::from(bf16::from_le_bytes([block[0], block[1]]).to_f32()),
        TensorType::Q8_0 => half(0) * signed(block[2 + n]),
        TensorType::Q4_0 => half(0) * (nibble(2) as f64 - 8.0),
        TensorType::Q4_1 => half(0) * nibble(4) as f64 + half(2),
        TensorType::Q5_0 => half(0) * ((nibble(6) | fifth(2)) as f64 - 16.0),
        TensorType::Q5_1 => half(0) * (nibble(8) | fifth(4)) as f64 + half(2),
        TensorType::Iq4Nl => half(0) * f64::from(IQ4_NL_VALUES[nibble(2)]),
        TensorType::Mxfp4 => 2f64.powi(i32::from(block[0]) - 128) * f64::from(MXFP4_VALUES[nibble(1)]),
        TensorType::Q4K => {
            let (scale, minimum) = six_bits(&block[4..16], n / 32);
            half(0) * scale * k_nibble(&block[16..], n) as f64 - half(2) * minimum
        }
        TensorType::Q5K => {
            let (scale, minimum) = six_bits(&block[4..16], n / 32);
            let fifth = usize::from(block[16 + n % 32] >> (n / 32) & 1) << 4;
            half(0) * scale * (k_nibble(&block[48..], n) | fifth) as f64 - half(2) * minimum
        }
        TensorType::Q6K => {
            let (part, place) = (n / 128, n % 128);
            let low = block[part * 64 + place % 64] >> (place / 64 * 4) & 15;
            let high = block[128 + part * 32 + place % 32] >> (place / 32 * 2) & 3;
            half(208) * signed(block[192 + n / 16]) * (f64::from(low | high << 4) - 32.0)
        }
    }
}

/// Four bits of number `n`: 64 numbers share 32 bytes, the first 32 of them in the low bits.
fn k_nibble(bytes: &[u8], n: usize) -> usize {
    usize::from(bytes[n / 64 * 32 + n % 32] >> (n % 64 / 32 * 4) & 15)
}

/// Scale and minimum of 32 numbers, of 6 bits each, out of twelve bytes.
fn six_bits(bytes: &[u8], n: usize) -> (f64, f64) {
    let (scale, minimum) = if n < 4 {
        (bytes[n] & 63, bytes[n + 4] & 63)
    } else {
        (bytes[n + 4] & 15 | bytes[n - 4] >> 6 << 4, bytes[n + 4] >> 4 | bytes[n] >> 6 << 4)
    };
    (f64::from(scale), f64::from(minimum))
}
