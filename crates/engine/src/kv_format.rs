//! What the cache keeps keys and values as.

/// The format of the numbers in the cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KvFormat {
    /// 16 bits each: half the memory, and half of what attention reads.
    #[default]
    F16,
    /// 32 bits each, as they are computed: the reference.
    F32,
}

impl KvFormat {
    /// Bytes of so many numbers.
    pub(crate) fn bytes(self, numbers: u64) -> u64 {
        match self {
            Self::F16 => numbers * 2,
            Self::F32 => numbers * 4,
        }
    }
}
