//! From the blocks of a file to what the kernels read: the numbers of few bits in whole words of 16 bytes, and beside them in a
//! plane of their own scales, minimums and further bits. `ops/formats` has the reading side of each.

use stint_gguf::TensorType;

/// The two planes of some blocks.
#[derive(Debug, Default)]
pub(crate) struct Planes {
    pub(crate) numbers: Vec<u8>,
    pub(crate) scales: Vec<u8>,
}

/// The bytes of a row's numbers on the device.
pub(crate) fn number_bytes(kind: TensorType, columns: usize) -> usize {
    match kind {
        TensorType::F32 => columns * 4,
        TensorType::F16 | TensorType::Bf16 => columns * 2,
        TensorType::Q8_0 => columns,
        _ => columns / 2,
    }
}

/// The bytes that stand beside the numbers of a row.
pub(crate) fn scale_bytes(kind: TensorType, columns: usize) -> usize {
    let block = match kind {
        TensorType::F32 | TensorType::F16 | TensorType::Bf16 => 0,
        TensorType::Mxfp4 => 1,
        TensorType::Q8_0 | TensorType::Q4_0 | TensorType::Iq4Nl => 2,
        TensorType::Q4_1 => 4,
        TensorType::Q5_0 | TensorType::Q5_1 => 8,
        TensorType::Q4K => 16,
        TensorType::Q5K => 48,
        TensorType::Q6K => 84,
    };
    columns / kind.block_numbers() * block
}

/// Repacks whole blocks.
pub(crate) fn repack(kind: TensorType, blocks: &[u8]) -> Planes {
    let mut planes = Planes::default();
    let add: fn(&mut Planes, &[u8]) = match kind {
        TensorType::F32 | TensorType::F16 | TensorType::Bf16 => {
            planes.numbers.extend_from_slice(blocks);
            return planes;
        }
        TensorType::Q8_0 | TensorType::Q4_0 | TensorType::Iq4Nl => |planes, block| planes.split(block, 2),
        TensorType::Mxfp4 => |planes, block| planes.split(block, 1),
        TensorType::Q4_1 => |planes, block| planes.split(block, 4),
        TensorType::Q5_0 => |planes, block| planes.five_bits(&[block[0], block[1], 0, 0], &block[2..]),
        TensorType::Q5_1 => |planes, block| planes.five_bits(&block[..4], &block[4..]),
        TensorType::Q4K => |planes, block| {
            planes.scales.extend_from_slice(&block[..16]);
            planes.pairs_of_32(&block[16..]);
        },
        TensorType::Q5K => |planes, block| {
            planes.scales.extend_from_slice(&block[..16]);
            let fifth = |part: usize, n: usize| u32::from(block[16 + n] >> part & 1);
            (0..8).for_each(|part| planes.fifth_bits(|n| fifth(part, n)));
            planes.pairs_of_32(&block[48..]);
        },
        TensorType::Q6K => Planes::six_bits,
    };
    planes.numbers.reserve(blocks.len());
    blocks.chunks_exact(kind.block_bytes()).for_each(|block| add(&mut planes, block));
    planes
}

impl Planes {
    /// A block that begins with so many bytes of scales, and has its numbers in the order of the kernels.
    fn split(&mut self, block: &[u8], head: usize) {
        let (scales, numbers) = block.split_at(head);
        self.scales.extend_from_slice(scales);
        self.numbers.extend_from_slice(numbers);
    }

    /// Scale and minimum, and behind them 32 fifth bits and the other four of each.
    fn five_bits(&mut self, factors: &[u8], bits: &[u8]) {
        self.fifth_bits(|n| u32::from(bits[n / 8] >> (n % 8) & 1));
        self.scales.extend_from_slice(factors);
        self.numbers.extend_from_slice(&bits[4..]);
    }

    /// A word of the fifth bits of 32 numbers: those of the n-th four are the n-th bits of its four bytes.
    fn fifth_bits(&mut self, bit: impl Fn(usize) -> u32) {
        let word = (0..32).fold(0, |word, n| word | bit(n) << (n % 4 * 8 + n / 4));
        self.scales.extend_from_slice(&word.to_le_bytes());
    }

    /// Of each 64 numbers the file has the first 32 in the low bits of 32 bytes; the kernels want 16 and 16 of each 32.
    fn pairs_of_32(&mut self, bytes: &[u8]) {
        for part in bytes.chunks_exact(32) {
            let (first, second) = part.split_at(16);
            self.numbers.extend(first.iter().zip(second).map(|(a, b)| a & 15 | b << 4));
            self.numbers.extend(first.iter().zip(second).map(|(a, b)| a >> 4 | b & 0xf0));
        }
    }

    /// 256 numbers of 6 bits. The file has them in halves of 128, which are four times 32.
    fn six_bits(&mut self, block: &[u8]) {
        let low = |n: usize| block[n / 128 * 64 + n % 64] >> (n % 128 / 64 * 4) & 15;
        let high = |n: usize| block[128 + n / 128 * 32 + n % 32] >> (n % 128 / 32 * 2) & 3;
        for from in (0..256).step_by(32) {
            self.numbers.extend((from..from + 16).map(|n| low(n) | low(n + 16) << 4));
            for half in [from, from + 16] {
                let bits = |n: usize| u32::from(high(half + n)) << (n % 4 * 8 + n / 4 * 2);
                let word = (0..16).fold(0, |word, n| word | bits(n));
                self.scales.extend_from_slice(&word.to_le_bytes());
            }
        }
        self.scales.extend_from_slice(&block[192..210]);
        self.scales.extend_from_slice(&[0, 0]);
    }
}
