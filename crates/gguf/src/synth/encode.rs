//! Numbers into any format: simply, not as well as a quantiser does it that minds the error.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "quantised numbers are clamped to their few bits first"
)]

use half::{bf16, f16};

use super::decode::{IQ4_NL_VALUES, MXFP4_VALUES};
use crate::TensorType;

/// Encodes numbers, a whole number of blocks.
pub fn encode(kind: TensorType, numbers: &[f32]) -> Vec<u8> {
    numbers.chunks(kind.block_numbers()).flat_map(|block| encode_block(kind, block)).collect()
}

fn encode_block(kind: TensorType, block: &[f32]) -> Vec<u8> {
    match kind {
        TensorType::F32 => block[0].to_le_bytes().to_vec(),
        TensorType::F16 => half(block[0]).to_vec(),
        TensorType::Bf16 => bf16::from_f32(block[0]).to_le_bytes().to_vec(),
        TensorType::Q8_0 => bytes(block),
        TensorType::Q4_0 => signed(block, 4),
        TensorType::Q5_0 => signed(block, 5),
        TensorType::Q4_1 => unsigned(block, 4),
        TensorType::Q5_1 => unsigned(block, 5),
        TensorType::Iq4Nl => {
            let scale = f16::from_f32(largest(block) / 127.0);
            let quants = nearest(block, scale.to_f32(), &IQ4_NL_VALUES);
            [&scale.to_le_bytes()[..], &nibbles(&quants)].concat()
        }
        TensorType::Mxfp4 => {
            let power = (largest(block) / 6.0).max(1e-30).log2().ceil().clamp(-126.0, 126.0);
            let quants = nearest(block, power.exp2() / 2.0, &MXFP4_VALUES);
            [&[(power + 127.0) as u8][..], &nibbles(&quants)].concat()
        }
        TensorType::Q4K => k_block(block, 4),
        TensorType::Q5K => k_block(block, 5),
        TensorType::Q6K => six(block),
    }
}

fn half(number: f32) -> [u8; 2] {
    f16::from_f32(number).to_le_bytes()
}

fn largest(block: &[f32]) -> f32 {
    block.iter().fold(0f32, |most, n| most.max(n.abs()))
}

fn inverse(scale: f32) -> f32 {
    if scale == 0.0 { 0.0 } else { scale.recip() }
}

fn bytes(block: &[f32]) -> Vec<u8> {
    let scale = largest(block) / 127.0;
    let quants = block.iter().map(|n| ((n * inverse(scale)).round() as i8).to_le_bytes()[0]);
    half(scale).into_iter().chain(quants).collect()
}

/// The number whose entry of the table is nearest.
fn nearest(block: &[f32], scale: f32, table: &[i8; 16]) -> Vec<u8> {
    let distance = |n: f32, entry: i8| (n - scale * f32::from(entry)).abs();
    let best = |n: &f32| {
        let all = 0..16u8;
        all.min_by(|a, b| {
            distance(*n, table[usize::from(*a)]).total_cmp(&distance(*n, table[usize::from(*b)]))
        })
    };
    block.iter().map(|n| best(n).unwrap_or(0)).collect()
}

/// The low four bits of 32 numbers.
fn nibbles(quants: &[u8]) -> Vec<u8> {
    (0..16).map(|n| quants[n] & 15 | (quants[n + 16] & 15) << 4).collect()
}

/// The fifth bits of 32 numbers.
fn fifths(quants: &[u8]) -> [u8; 4] {
    let bit = |all: u32, (n, quant): (usize, &u8)| all | u32::from(quant >> 4 & 1) << n;
    quants.iter().enumerate().fold(0, bit).to_le_bytes()
}

/// Around a middle, without a minimum.
fn signed(block: &[f32], bits: u8) -> Vec<u8> {
    let middle = f32::from(1u8 << (bits - 1));
    let extreme = block.iter().fold(0f32, |most, n| if n.abs() > most.abs() { *n } else { most });
    let scale = extreme / -middle;
    let quants: Vec<_> = block
        .iter()
        .map(|n| (n * inverse(scale) + middle).round().clamp(0.0, 2.0 * middle - 1.0) as u8)
        .collect();
    pack(&half(scale), &quants, bits)
}

/// From a minimum up.
fn unsigned(block: &[f32], bits: u8) -> Vec<u8> {
    let most = f32::from((1u8 << bits) - 1);
    let (low, high) = block.iter().fold((f32::MAX, f32::MIN), |(low, high), n| (low.min(*n), high.max(*n)));
    let scale = (high - low) / most;
    let quants: Vec<_> =
        block.iter().map(|n| ((n - low) * inverse(scale)).round().clamp(0.0, most) as u8).collect();
    pack(&[half(scale), half(low)].concat(), &quants, bits)
}

fn pack(head: &[u8], quants: &[u8], bits: u8) -> Vec<u8> {
    let fifths = fifths(quants);
    let fifths = if bits == 5 { &fifths[..] } else { &[] };
    [head, fifths, &nibbles(quants)].concat()
}

/// 256 numbers, each 32 with a scale and a minimum of 6 bits.
fn k_block(block: &[f32], bits: u8) -> Vec<u8> {
    let most = f32::from((1u8 << bits) - 1);
    let ranges: Vec<(f32, f32)> = block
        .chunks(32)
        .map(|part| {
            let low = part.iter().fold(0f32, |low, n| low.min(*n));
            let high = part.iter().fold(f32::MIN, |high, n| high.max(*n));
            ((high - low).max(0.0) / most, -low)
        })
        .collect();
    let top = |of: fn(&(f32, f32)) -> f32| f16::from_f32(ranges.iter().map(of).fold(0f32, f32::max) / 63.0);
    let (scale, minimum) = (top(|range| range.0), top(|range| range.1));
    let six = |n: f32, unit: f16| (n * inverse(unit.to_f32())).round().clamp(0.0, 63.0) as u8;
    let sixes: Vec<(u8, u8)> =
        ranges.iter().map(|&(step, low)| (six(step, scale), six(low, minimum))).collect();
    let mut quants = Vec::new();
    for (part, &(step, low)) in block.chunks(32).zip(&sixes) {
        let (step, low) = (scale.to_f32() * f32::from(step), minimum.to_f32() * f32::from(low));
        quants.extend(part.iter().map(|n| ((n + low) * inverse(step)).round().clamp(0.0, most) as u8));
    }
    let mut out = [scale.to_le_bytes(), minimum.to_le_bytes()].concat();
    out.extend(sixes_packed(&sixes));
    if bits == 5 {
        out.extend((0..32).map(|l| (0..8).fold(0u8, |all, b| all | (quants[b * 32 + l] >> 4 & 1) << b)));
    }
    for pair in quants.chunks(64) {
        out.extend((0..32).map(|l| pair[l] & 15 | (pair[l + 32] & 15) << 4));
    }
    out
}

/// Eight scales and minimums of 6 bits in twelve bytes.
fn sixes_packed(sixes: &[(u8, u8)]) -> Vec<u8> {
    let mut out = vec![0; 12];
    for (n, &(scale, minimum)) in sixes.iter().enumerate() {
        if n < 4 {
            out[n] |= scale;
            out[n + 4] |= minimum;
        } else {
            out[n + 4] |= scale & 15 | (minimum & 15) << 4;
            out[n - 4] |= scale >> 4 << 6;
            out[n] |= minimum >> 4 << 6;
        }
    }
    out
}

/// 256 numbers of 6 bits, each 16 with a scale of 8 bits; every other one below zero, as files have them.
fn six(block: &[f32]) -> Vec<u8> {
    let unit = f16::from_f32(largest(block) / 31.0 / 127.0);
    let mut quants = Vec::new();
    let mut scales = Vec::new();
    for (n, part) in block.chunks(16).enumerate() {
        let scale = (largest(part) / 31.0 * inverse(unit.to_f32())).round().clamp(1.0, 127.0) as i8;
        let scale = if n % 2 == 1 { -scale } else { scale };
        let step = unit.to_f32() * f32::from(scale);
        quants.extend(part.iter().map(|n| ((n * inverse(step)).round().clamp(-32.0, 31.0) + 32.0) as u8));
        scales.push(scale.to_le_bytes()[0]);
    }
    let mut out = Vec::new();
    for part in quants.chunks(128) {
        out.extend((0..64).map(|n| part[n] & 15 | (part[n + 64] & 15) << 4));
    }
    for part in quants.chunks(128) {
        out.extend((0..32).map(|n| (0..4).fold(0u8, |all, q| all | (part[q * 32 + n] >> 4) << (2 * q))));
    }
    out.extend(scales);
    out.extend(unit.to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::super::{decode, noise};
    use super::*;

    #[test]
    fn every_format_gives_back_about_what_was_stored() {
        let mut state = 3;
        let numbers: Vec<f32> = (0..512).map(|_| noise(&mut state)).collect();
        for (kind, tolerance) in TensorType::ALL
            .into_iter()
            .zip([0.0, 1e-3, 5e-3, 0.15, 0.08, 0.08, 0.04, 5e-3, 0.08, 0.05, 0.03, 0.15, 0.2])
        {
            let bytes = encode(kind, &numbers);
            assert_eq!(Some(bytes.len()), kind.row_bytes(512), "{kind:?}");
            for (stored, number) in decode(kind, &bytes).iter().zip(&numbers) {
                let off = (stored - f64::from(*number)).abs();
                assert!(off <= tolerance, "{kind:?}: {number} became {stored}");
            }
        }
    }
}
