//! What the cache keeps keys and values as.

/// The format of the numbers in the cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KvFormat {
    /// 16 bits each: half the memory, and half of what attention reads.
    #[default]
    F16,
    /// 32 bits each, as they are computed: the reference.
    F32,
    /// 8 bits each, and 16 bits of scale for every 32 numbers of a head (for what is left at its end, too): a little more than half of
    /// what `F16` takes. Any size of head will do.
    ///
    /// Keys have a few numbers that are many times as large as the others of their head, above all where a model adds biases to them
    /// (Qwen2). A scale for a whole head would round the others to next to nothing. So a scale is for 32 numbers, as it is in
    /// llama.cpp's `q8_0`, and such a number costs its neighbours alone. It costs attention little: one multiplication for 32 of a
    /// key's products, one for all that a thread has of a value. The scale is the upper half of a float, rounded up before numbers are
    /// divided by it. So it is exact, is unpacked by a shift, and has a float's range, where llama.cpp's is a 16-bit float.
    Q8_0,
}

/// Numbers of a head that have a scale in common in [`KvFormat::Q8_0`].
pub(crate) const SCALED_TOGETHER: u32 = 32;

impl KvFormat {
    /// Bytes of one position's keys or values of one head. Scales go in pairs.
    pub(crate) fn head_bytes(self, head_dim: u32) -> u64 {
        let numbers = u64::from(head_dim);
        match self {
            Self::F16 => numbers * 2,
            Self::F32 => numbers * 4,
            Self::Q8_0 => numbers + 4 * u64::from(head_dim.div_ceil(2 * SCALED_TOGETHER)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bits_take_little_more_than_half_of_sixteen() {
        let bytes = |head_dim| {
            [KvFormat::F32, KvFormat::F16, KvFormat::Q8_0].map(|format| format.head_bytes(head_dim))
        };
        assert_eq!(bytes(128), [512, 256, 136]);
        assert_eq!(bytes(64), [256, 128, 68]);
        assert_eq!(bytes(96), [384, 192, 104]);
        assert_eq!(bytes(20), [80, 40, 24]);
    }
}
