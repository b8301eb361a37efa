//! Model files in the GGUF format: typed metadata, and tensors whose bytes are read when they are wanted.
//!
//! Everything a file says is checked against its length before it is believed. Only the metadata is kept in memory; the weights
//! are read piece by piece when they are uploaded.

mod contents;
mod error;
mod read;
mod source;
mod split;
#[cfg(any(test, feature = "synth"))]
pub mod synth;
mod tensor_type;

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use read::TensorEntry;
use source::{GgufSource, ModelFile, SourceBytes};
use tensor_type::ggml_name;

pub use error::GgufError;
pub(crate) use read::MetadataValue;
pub use split::part_names;
pub use tensor_type::TensorType;

/// A tensor as it lies in the file: rows of numbers, each row contiguous.
#[derive(Clone, Copy)]
pub struct Tensor<'a> {
    /// How its numbers are encoded.
    pub kind: TensorType,
    /// How many rows it has.
    pub rows: usize,
    /// How many numbers a row has.
    pub columns: usize,
    /// The rows, one behind the other.
    bytes: SourceBytes<'a>,
}

impl std::fmt::Debug for Tensor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, rows, columns, .. } = self;
        f.debug_struct("Tensor")
            .field("kind", kind)
            .field("rows", rows)
            .field("columns", columns)
            .finish_non_exhaustive()
    }
}

impl<'a> Tensor<'a> {
    /// A tensor whose rows are in memory.
    #[must_use]
    pub fn in_memory(kind: TensorType, rows: usize, columns: usize, data: &'a [u8]) -> Self {
        Self { kind, rows, columns, bytes: SourceBytes::Memory(data) }
    }

    /// How many bytes its rows take.
    #[must_use]
    pub fn length(&self) -> usize {
        self.bytes.length()
    }

    /// Fills `into` with its bytes from `at` on, which must be there.
    pub fn read_at(&self, at: usize, into: &mut [u8]) -> Result<(), GgufError> {
        self.bytes.read(at, into)
    }

    /// All its bytes: for small tensors.
    pub fn read(&self) -> Result<Cow<'a, [u8]>, GgufError> {
        if let SourceBytes::Memory(bytes) = self.bytes {
            return Ok(Cow::Borrowed(bytes));
        }
        let mut bytes = vec![0; self.length()];
        self.read_at(0, &mut bytes)?;
        Ok(Cow::Owned(bytes))
    }
}

/// A model file: its metadata, read, and where its tensors are.
pub struct Gguf {
    /// Its files, each with the place where tensors' data begins. There is one, unless the model is split.
    parts: Vec<(GgufSource, usize)>,
    metadata: HashMap<String, MetadataValue>,
    entries: HashMap<String, TensorEntry>,
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
    /// Opens a file, and the others where it is the first of several. To replace it, rename another to its name: the one that is
    /// open stays as it is.
    pub fn open(path: &Path) -> Result<Self, GgufError> {
        let mut gguf = Self::parse(GgufSource::File(ModelFile::open(path)?))?;
        gguf.open_other_parts(path)?;
        Ok(gguf)
    }

    /// Reads a file that is part of the program.
    pub fn from_static(bytes: &'static [u8]) -> Result<Self, GgufError> {
        Self::parse(GgufSource::Static(bytes))
    }

    /// Reads a file that is already in memory.
    pub fn from_bytes(bytes: Arc<[u8]>) -> Result<Self, GgufError> {
        Self::parse(GgufSource::Shared(bytes))
    }

    fn parse(source: GgufSource) -> Result<Self, GgufError> {
        let contents = read::read_header(&source)?;
        let parts = vec![(source, contents.data)];
        Ok(Self { parts, metadata: contents.metadata, entries: contents.entries })
    }

    /// Fails where the file is not as it was when it was opened, so that what was read of it may be of two files.
    pub fn check_unchanged(&self) -> Result<(), GgufError> {
        self.parts.iter().try_for_each(|(source, _)| source.check_unchanged())
    }

    /// A text, where the key is present and a text.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.metadata.get(key)? {
            MetadataValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number that fits `u32`, of whatever width it is stored with. One for each layer counts where all are the same.
    #[must_use]
    pub fn integer(&self, key: &str) -> Option<u32> {
        match self.metadata.get(key)? {
            MetadataValue::Integer(number) => u32::try_from(*number).ok(),
            MetadataValue::Integers(numbers) => {
                let first = numbers.first()?;
                let is_same = numbers.iter().all(|number| number == first);
                is_same.then_some(*first).and_then(|number| u32::try_from(number).ok())
            }
            _ => None,
        }
    }

    /// A number with a fraction, or a whole one: some tools write `10000` for `10000.0`.
    #[must_use]
    pub fn float(&self, key: &str) -> Option<f32> {
        match self.metadata.get(key)? {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "metadata floats are 32 bits in every known file"
            )]
            MetadataValue::Float(number) => Some(*number as f32),
            MetadataValue::Integer(number) => Some(*number as f32),
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

    /// Whether there is metadata of this name, of any type.
    #[must_use]
    pub fn has_key(&self, key: &str) -> bool {
        self.metadata.contains_key(key)
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

    /// Whether every tensor is of a format that is read, and within the file.
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
        let (source, data) = self.parts.get(entry.part).ok_or_else(outside)?;
        let from = usize::try_from(entry.offset).ok().and_then(|offset| data.checked_add(offset));
        let from = from.ok_or_else(outside)?;
        let to = from.checked_add(length).ok_or_else(outside)?;
        let bytes = source.get(from, to).ok_or_else(outside)?;
        Ok(Tensor { kind, rows, columns, bytes })
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
        assert_eq!(gguf.integer("tokenizer.ggml.token_type"), Some(1), "one number, said for each");
        assert_eq!(gguf.float("qwen3.block_count"), Some(2.0));
        assert!(gguf.has_key("qwen3.block_count") && !gguf.has_key("qwen3.absent"));
        let tensor = gguf.tensor("token_embd.weight").unwrap();
        assert_eq!((tensor.kind, tensor.rows, tensor.columns), (TensorType::F32, 64, 32));
        assert!(matches!(gguf.tensor("absent"), Err(GgufError::MissingTensor(_))));
    }

    /// A file on disk of its own, gone with this value.
    struct FileOnDisk(std::path::PathBuf);

    impl FileOnDisk {
        fn new(name: &str) -> FileOnDisk {
            let path = std::env::temp_dir().join(format!("stint-gguf-{name}-{}.gguf", std::process::id()));
            std::fs::write(&path, file()).unwrap();
            FileOnDisk(path)
        }
    }

    impl Drop for FileOnDisk {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_file_on_disk_reads_the_same_as_one_in_memory_also_once_another_has_its_name() {
        let on_disk = FileOnDisk::new("same");
        let opened = Gguf::open(&on_disk.0).unwrap();
        let read = Gguf::from_bytes(file().into()).unwrap();
        let next = FileOnDisk::new("next");
        std::fs::write(&next.0, b"another").unwrap();
        std::fs::rename(&next.0, &on_disk.0).unwrap();
        let name = "blk.1.ffn_down.weight";
        let (opened_tensor, read) = (opened.tensor(name).unwrap(), read.tensor(name).unwrap());
        assert_eq!(opened_tensor.read().unwrap(), read.read().unwrap());
        let mut part = [0; 8];
        opened_tensor.read_at(4, &mut part).unwrap();
        assert_eq!(part, read.read().unwrap()[4..12]);
        opened.check_unchanged().unwrap();
    }

    #[test]
    fn a_file_that_is_cut_short_once_it_is_open_is_an_error_and_not_the_end_of_the_process() {
        let on_disk = FileOnDisk::new("cut");
        let opened = Gguf::open(&on_disk.0).unwrap();
        let tensor = opened.tensor("blk.1.ffn_down.weight").unwrap();
        std::fs::File::options().write(true).open(&on_disk.0).unwrap().set_len(100).unwrap();
        let error = tensor.read().unwrap_err().to_string();
        assert!(error.contains("ended while it was read"), "{error}");
        assert!(matches!(opened.check_unchanged(), Err(GgufError::Changed)));
    }

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let Err(GgufError::Open { source, .. }) = Gguf::open(&std::env::temp_dir()) else {
            panic!("a folder")
        };
        assert_eq!(source.to_string(), "it is no regular file");
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
