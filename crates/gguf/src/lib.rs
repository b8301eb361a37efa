//! Model files in the GGUF format, memory-mapped: typed metadata, and tensors as borrowed bytes.
//!
//! Everything a file says is checked against its length before it is believed. Nothing is copied
//! but the metadata; the weights are read where they lie, when they are uploaded.

mod error;
mod read;
#[cfg(any(test, feature = "synth"))]
pub mod synth;
mod tensor_type;

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use read::TensorEntry;
use tensor_type::ggml_name;

pub use error::GgufError;
pub(crate) use read::MetadataValue;
pub use tensor_type::TensorType;

/// A tensor as it lies in the file: rows of numbers, each row contiguous.
#[derive(Debug, Clone, Copy)]
pub struct Tensor<'a> {
    /// How its numbers are encoded.
    pub kind: TensorType,
    /// How many rows it has.
    pub rows: usize,
    /// How many numbers a row has.
    pub columns: usize,
    /// The rows, one behind the other.
    pub data: &'a [u8],
}

enum GgufBytes {
    Mapped(memmap2::Mmap),
    Static(&'static [u8]),
    Shared(Arc<[u8]>),
}

impl GgufBytes {
    fn get(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Static(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// A model file: its metadata, read, and its tensors, mapped.
pub struct Gguf {
    bytes: GgufBytes,
    metadata: HashMap<String, MetadataValue>,
    entries: HashMap<String, TensorEntry>,
    data: usize,
}

impl std::fmt::Debug for Gguf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gguf")
            .field("metadata", &self.metadata.len())
            .field("tensors", &self.entries.len())
            .finish_non_exhaustive()
    }
}

impl Gguf {
    /// Maps a file. The file must not be changed in place while the engine loads it.
    pub fn open(path: &Path) -> Result<Self, GgufError> {
        let failed = |source| GgufError::Open { path: path.display().to_string(), source };
        let file = File::open(path).map_err(failed)?;
        // SAFETY: the map is read-only and private to this value. Truncating the file from outside
        // while it is mapped would fault; operators replace model files by renaming, as documented.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(failed)?;
        Self::parse(GgufBytes::Mapped(map))
    }

    /// Reads a file that is part of the program.
    pub fn from_static(bytes: &'static [u8]) -> Result<Self, GgufError> {
        Self::parse(GgufBytes::Static(bytes))
    }

    /// Reads a file that is already in memory.
    pub fn from_bytes(bytes: Arc<[u8]>) -> Result<Self, GgufError> {
        Self::parse(GgufBytes::Shared(bytes))
    }

    fn parse(bytes: GgufBytes) -> Result<Self, GgufError> {
        let contents = read::read_header(bytes.get())?;
        Ok(Self { bytes, metadata: contents.metadata, entries: contents.entries, data: contents.data })
    }

    /// A text, where the key is present and a text.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.metadata.get(key)? {
            MetadataValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number that fits `u32`, of whatever width it is stored with.
    #[must_use]
    pub fn integer(&self, key: &str) -> Option<u32> {
        match self.metadata.get(key)? {
            MetadataValue::Integer(number) => u32::try_from(*number).ok(),
            _ => None,
        }
    }

    /// A number with a fraction.
    #[must_use]
    pub fn float(&self, key: &str) -> Option<f32> {
        match self.metadata.get(key)? {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "metadata floats are 32 bits in every known file"
            )]
            MetadataValue::Float(number) => Some(*number as f32),
            _ => None,
        }
    }

    /// A truth value.
    #[must_use]
    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.metadata.get(key)? {
            MetadataValue::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    /// A list of texts, such as the vocabulary.
    #[must_use]
    pub fn texts(&self, key: &str) -> Option<&[String]> {
        match self.metadata.get(key)? {
            MetadataValue::Texts(texts) => Some(texts),
            _ => None,
        }
    }

    /// A list of whole numbers, such as the types of the vocabulary's entries.
    #[must_use]
    pub fn integers(&self, key: &str) -> Option<&[i64]> {
        match self.metadata.get(key)? {
            MetadataValue::Integers(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// A list of numbers with a fraction, such as the vocabulary's scores.
    #[must_use]
    pub fn floats(&self, key: &str) -> Option<&[f32]> {
        match self.metadata.get(key)? {
            MetadataValue::Floats(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// The names of the metadata.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.metadata.keys().map(String::as_str)
    }

    /// The names of the tensors.
    pub fn tensor_names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Whether a tensor of this name exists.
    #[must_use]
    pub fn has_tensor(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Whether every tensor can be read.
    pub fn check_tensors(&self) -> Result<(), GgufError> {
        let mut names: Vec<&String> = self.entries.keys().collect();
        names.sort_unstable();
        names.into_iter().try_for_each(|name| self.tensor(name).map(drop))
    }

    /// The tensor of this name, as rows.
    pub fn tensor(&self, name: &str) -> Result<Tensor<'_>, GgufError> {
        let entry = self.entries.get(name).ok_or_else(|| GgufError::MissingTensor(name.to_owned()))?;
        let kind = TensorType::from_ggml(entry.kind)
            .ok_or_else(|| GgufError::TensorType { name: name.to_owned(), kind: ggml_name(entry.kind) })?;
        let outside = || GgufError::Malformed(format!("tensor `{name}` does not fit in the file"));
        let columns = entry.dimensions.first().copied().unwrap_or(1);
        let rows = entry.dimensions.iter().skip(1).try_fold(1usize, |all, &n| all.checked_mul(n));
        let rows = rows.ok_or_else(outside)?;
        let length = kind.row_bytes(columns).and_then(|row| row.checked_mul(rows)).ok_or_else(outside)?;
        let from = usize::try_from(entry.offset).ok().and_then(|offset| self.data.checked_add(offset));
        let from = from.ok_or_else(outside)?;
        let to = from.checked_add(length).ok_or_else(outside)?;
        let data = self.bytes.get().get(from..to).ok_or_else(outside)?;
        Ok(Tensor { kind, rows, columns, data })
    }
}

#[cfg(test)]
mod tests {
    use super::synth::SyntheticModel;
    use super::*;

    fn file() -> Vec<u8> {
        SyntheticModel::default().bytes()
    }

    /// As quantised files have it that other engines run.
    #[test]
    fn a_tensor_of_a_kind_that_no_kernel_reads_is_found_before_it_is_loaded() {
        let mut gguf = Gguf::from_bytes(file().into()).unwrap();
        gguf.check_tensors().unwrap();
        gguf.entries.get_mut("token_embd.weight").unwrap().kind = 10;
        let error = gguf.check_tensors().unwrap_err().to_string();
        assert!(error.contains("`token_embd.weight` is stored as Q2_K"), "{error}");
        assert!(error.contains("Q4_K_M") && error.contains("kind = \"llamacpp\""), "{error}");
    }

    #[test]
    fn a_file_tells_its_metadata_and_tensors() {
        let gguf = Gguf::from_bytes(file().into()).unwrap();
        assert_eq!(gguf.text("general.architecture"), Some("qwen3"));
        assert_eq!(gguf.integer("qwen3.block_count"), Some(2));
        assert_eq!(gguf.float("qwen3.rope.freq_base"), Some(10_000.0));
        assert_eq!(gguf.flag("tokenizer.ggml.add_bos_token"), Some(false));
        assert_eq!(gguf.texts("tokenizer.ggml.tokens").map(<[String]>::len), Some(64));
        assert_eq!(gguf.integers("tokenizer.ggml.token_type").map(<[i64]>::len), Some(64));
        assert_eq!(gguf.integer("general.architecture"), None);
        let tensor = gguf.tensor("token_embd.weight").unwrap();
        assert_eq!((tensor.kind, tensor.rows, tensor.columns), (TensorType::F32, 64, 32));
        assert!(matches!(gguf.tensor("absent"), Err(GgufError::MissingTensor(_))));
    }

    #[test]
    fn a_mapped_file_reads_the_same_as_one_in_memory() {
        let path = std::env::temp_dir().join(format!("stint-gguf-{}.gguf", std::process::id()));
        std::fs::write(&path, file()).unwrap();
        let mapped = Gguf::open(&path).unwrap();
        let read = Gguf::from_bytes(file().into()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let name = "blk.1.ffn_down.weight";
        assert_eq!(mapped.tensor(name).unwrap().data, read.tensor(name).unwrap().data);
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Gguf::open(Path::new("/nowhere/model.gguf")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/model.gguf"));
    }

    #[test]
    fn a_file_cut_short_anywhere_is_refused_without_a_panic() {
        let whole = file();
        let head = whole.len().min(6000);
        for length in (0..head).chain((head..whole.len()).step_by(997)) {
            let part: Arc<[u8]> = whole[..length].into();
            let Ok(gguf) = Gguf::from_bytes(part) else { continue };
            let all = gguf.entries.keys().all(|name| gguf.tensor(name).is_ok());
            assert!(!all, "a file of {length} of {} bytes passed", whole.len());
        }
    }

    #[test]
    fn a_file_with_any_byte_changed_is_read_or_refused_without_a_panic() {
        let whole = file();
        for place in 0..whole.len().min(6000) {
            let mut changed = whole.clone();
            changed[place] ^= 0xff;
            if let Ok(gguf) = Gguf::from_bytes(changed.into()) {
                for name in gguf.entries.keys() {
                    let _ = gguf.tensor(name);
                }
            }
        }
    }
}
