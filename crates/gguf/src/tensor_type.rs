//! How the numbers of a tensor are stored, by the formats that are read.

/// How the numbers of a tensor are stored.
///
/// All but the floats come in blocks: a run of numbers of few bits each, and what they are scaled with and moved by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TensorType {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
    /// The upper halves of 32-bit floats.
    Bf16,
    /// Blocks of 32 numbers of 4 bits and a scale.
    Q4_0,
    /// Blocks of 32 numbers of 4 bits, a scale and a minimum.
    Q4_1,
    /// Blocks of 32 numbers of 5 bits and a scale.
    Q5_0,
    /// Blocks of 32 numbers of 5 bits, a scale and a minimum.
    Q5_1,
    /// Blocks of 32 signed bytes and a scale.
    Q8_0,
    /// Blocks of 256 numbers of 4 bits; each 32 have a scale and a minimum of 6 bits.
    Q4K,
    /// The same with 5 bits.
    Q5K,
    /// Blocks of 256 numbers of 6 bits; each 16 have a scale of 8 bits.
    Q6K,
    /// Blocks of 32 numbers of 4 bits that choose from a table, and a scale.
    Iq4Nl,
    /// Blocks of 32 floats of 4 bits, and a power of two.
    Mxfp4,
}

impl TensorType {
    /// Every format that is read.
    pub const ALL: [Self; 13] = [
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q4K,
        Self::Q5K,
        Self::Q6K,
        Self::Iq4Nl,
        Self::Mxfp4,
    ];

    /// The format of ggml's number, where it is read.
    #[must_use]
    pub fn from_ggml(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.ggml() == number)
    }

    /// ggml's number for it.
    #[must_use]
    pub fn ggml(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Q4_0 => 2,
            Self::Q4_1 => 3,
            Self::Q5_0 => 6,
            Self::Q5_1 => 7,
            Self::Q8_0 => 8,
            Self::Q4K => 12,
            Self::Q5K => 13,
            Self::Q6K => 14,
            Self::Iq4Nl => 20,
            Self::Bf16 => 30,
            Self::Mxfp4 => 39,
        }
    }

    /// Its name, as people write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        ggml_name(self.ggml())
    }

    /// How many numbers a block has.
    #[must_use]
    pub fn block_numbers(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => 1,
            Self::Q4K | Self::Q5K | Self::Q6K => 256,
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 | Self::Q8_0 | Self::Iq4Nl | Self::Mxfp4 => 32,
        }
    }

    /// How many bytes a block takes.
    #[must_use]
    pub fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Q4_0 | Self::Iq4Nl => 18,
            Self::Q4_1 => 20,
            Self::Q5_0 => 22,
            Self::Q5_1 => 24,
            Self::Q8_0 => 34,
            Self::Q4K => 144,
            Self::Q5K => 176,
            Self::Q6K => 210,
            Self::Mxfp4 => 17,
        }
    }

    /// The bytes of a row of so many numbers; `None` where a row cannot be of that length.
    #[must_use]
    pub fn row_bytes(self, columns: usize) -> Option<usize> {
        let whole = columns.is_multiple_of(self.block_numbers());
        whole.then_some(columns / self.block_numbers())?.checked_mul(self.block_bytes())
    }
}

/// The name of a format by ggml's number, read or not.
#[must_use]
pub(crate) fn ggml_name(number: u32) -> &'static str {
    match number {
        0 => "F32",
        1 => "F16",
        2 => "Q4_0",
        3 => "Q4_1",
        6 => "Q5_0",
        7 => "Q5_1",
        8 => "Q8_0",
        9 => "Q8_1",
        10 => "Q2_K",
        11 => "Q3_K",
        12 => "Q4_K",
        13 => "Q5_K",
        14 => "Q6_K",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        20 => "IQ4_NL",
        21 => "IQ3_S",
        22 => "IQ2_S",
        23 => "IQ4_XS",
        24 => "I8",
        25 => "I16",
        26 => "I32",
        27 => "I64",
        28 => "F64",
        29 => "IQ1_M",
        30 => "BF16",
        34 => "TQ1_0",
        35 => "TQ2_0",
        39 => "MXFP4",
        40 => "NVFP4",
        _ => "an unknown type",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_of_whole_blocks() {
        assert_eq!(TensorType::Q4K.row_bytes(512), Some(288));
        assert_eq!(TensorType::Q4K.row_bytes(576), None);
        assert_eq!(TensorType::Q4_1.row_bytes(576), Some(360));
        assert_eq!(TensorType::F32.row_bytes(3), Some(12));
        assert_eq!(TensorType::F32.row_bytes(usize::MAX), None);
    }

    #[test]
    fn every_format_has_a_number_and_a_name_of_its_own() {
        for kind in TensorType::ALL {
            assert_eq!(TensorType::from_ggml(kind.ggml()), Some(kind));
            assert_ne!(kind.name(), "an unknown type");
        }
        assert_eq!(TensorType::from_ggml(10), None);
    }
}
