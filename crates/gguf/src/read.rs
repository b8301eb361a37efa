//! The GGUF header: a cursor that never reads past the end, and what it finds.

use std::collections::HashMap;

use super::error::GgufError;
use super::source::GgufSource;

/// Bytes of the header that are read at once, or more where one text is longer.
const WINDOW_MIN: usize = 64 << 10;

/// One metadata value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MetadataValue {
    Integer(i128),
    Float(f64),
    Bool(bool),
    Text(String),
    Integers(Vec<i64>),
    Floats(Vec<f32>),
    Texts(Vec<String>),
}

/// Where a tensor lies.
#[derive(Debug, Clone)]
pub(super) struct TensorEntry {
    pub(super) kind: u32,
    pub(super) dimensions: Vec<usize>,
    pub(super) offset: u64,
    /// The file that it is in, of a model that is split.
    pub(super) part: usize,
}

/// What stands before the weights.
pub(super) struct GgufHeader {
    pub(super) metadata: HashMap<String, MetadataValue>,
    pub(super) entries: HashMap<String, TensorEntry>,
    /// Where the tensors' data begins.
    pub(super) data: usize,
}

/// Reads the header of a file.
pub(super) fn read_header(source: &GgufSource) -> Result<GgufHeader, GgufError> {
    let mut cursor = GgufCursor { source, at: 0, window: Vec::new(), window_at: 0 };
    if cursor.take(4)? != b"GGUF" {
        return Err(malformed("it does not begin with `GGUF`"));
    }
    let version = cursor.u32()?;
    if !(2..=3).contains(&version) {
        return Err(malformed(&format!("version {version} is not known, only 2 and 3 are")));
    }
    let tensors = cursor.u64()?;
    let keys = cursor.u64()?;
    let mut metadata = HashMap::new();
    for _ in 0..keys {
        let key = cursor.text()?;
        let value = cursor.value()?;
        metadata.insert(key, value);
    }
    let mut entries = HashMap::new();
    for _ in 0..tensors {
        let (name, entry) = cursor.entry()?;
        entries.insert(name, entry);
    }
    let alignment = match metadata.get("general.alignment") {
        Some(MetadataValue::Integer(n)) => usize::try_from(*n).ok().filter(|n| n.is_power_of_two()),
        Some(_) => None,
        None => Some(32),
    };
    let alignment = alignment.ok_or_else(|| malformed("its alignment is not a power of two"))?;
    let data = cursor.at.checked_next_multiple_of(alignment).ok_or_else(|| malformed("it is too long"))?;
    Ok(GgufHeader { metadata, entries, data })
}

fn malformed(what: &str) -> GgufError {
    GgufError::Malformed(what.to_owned())
}

struct GgufCursor<'a> {
    source: &'a GgufSource,
    at: usize,
    /// Some bytes of the file, and where they begin in it.
    window: Vec<u8>,
    window_at: usize,
}

impl GgufCursor<'_> {
    fn take(&mut self, length: usize) -> Result<&[u8], GgufError> {
        let ends = || malformed("it ends in the middle of its header");
        let to = self.at.checked_add(length).filter(|to| *to <= self.source.length()).ok_or_else(ends)?;
        if to > self.window_at + self.window.len() {
            self.fill(length)?;
        }
        let taken = &self.window[self.at - self.window_at..][..length];
        self.at = to;
        Ok(taken)
    }

    /// Reads so many bytes and more from here on.
    fn fill(&mut self, length: usize) -> Result<(), GgufError> {
        let window = length.max(WINDOW_MIN).min(self.source.length() - self.at);
        self.window.resize(window, 0);
        self.window_at = self.at;
        let bytes = self.source.get(self.at, self.at + window);
        bytes.map_or(Ok(()), |bytes| bytes.read(0, &mut self.window))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u32(&mut self) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A length that the rest of the file can hold, at `least` bytes an element.
    fn length(&mut self, least: usize) -> Result<usize, GgufError> {
        let length = usize::try_from(self.u64()?).unwrap_or(usize::MAX);
        let room = (self.source.length() - self.at) / least;
        if length > room {
            return Err(malformed("a list or text is longer than the file"));
        }
        Ok(length)
    }

    fn text(&mut self) -> Result<String, GgufError> {
        let length = self.length(1)?;
        let bytes = self.take(length)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| malformed("a text in it is not UTF-8"))
    }

    fn entry(&mut self) -> Result<(String, TensorEntry), GgufError> {
        let name = self.text()?;
        let count = self.u32()?;
        if count > 4 {
            return Err(malformed("a tensor has more than four dimensions"));
        }
        let mut dimensions = Vec::new();
        for _ in 0..count {
            let size = usize::try_from(self.u64()?);
            dimensions.push(size.map_err(|_| malformed("a dimension is too large"))?);
        }
        let kind = self.u32()?;
        let offset = self.u64()?;
        Ok((name, TensorEntry { kind, dimensions, offset, part: 0 }))
    }

    fn value(&mut self) -> Result<MetadataValue, GgufError> {
        match self.u32()? {
            9 => self.list(),
            kind => self.single(kind),
        }
    }

    fn single(&mut self, kind: u32) -> Result<MetadataValue, GgufError> {
        Ok(match kind {
            0 => MetadataValue::Integer(i128::from(u8::from_le_bytes(self.array()?))),
            1 => MetadataValue::Integer(i128::from(i8::from_le_bytes(self.array()?))),
            2 => MetadataValue::Integer(i128::from(u16::from_le_bytes(self.array()?))),
            3 => MetadataValue::Integer(i128::from(i16::from_le_bytes(self.array()?))),
            4 => MetadataValue::Integer(i128::from(self.u32()?)),
            5 => MetadataValue::Integer(i128::from(i32::from_le_bytes(self.array()?))),
            6 => MetadataValue::Float(f64::from(f32::from_le_bytes(self.array()?))),
            7 => MetadataValue::Bool(self.array::<1>()?[0] != 0),
            8 => MetadataValue::Text(self.text()?),
            10 => MetadataValue::Integer(i128::from(self.u64()?)),
            11 => MetadataValue::Integer(i128::from(i64::from_le_bytes(self.array()?))),
            12 => MetadataValue::Float(f64::from_le_bytes(self.array()?)),
            _ => return Err(malformed(&format!("metadata type {kind} is not known"))),
        })
    }

    fn list(&mut self) -> Result<MetadataValue, GgufError> {
        let kind = self.u32()?;
        let length = self.length(1)?;
        match kind {
            8 => (0..length).map(|_| self.text()).collect::<Result<_, _>>().map(MetadataValue::Texts),
            6 | 12 => {
                (0..length).map(|_| self.float(kind)).collect::<Result<_, _>>().map(MetadataValue::Floats)
            }
            9 => Err(malformed("a list of lists is not supported")),
            _ => {
                (0..length).map(|_| self.integer(kind)).collect::<Result<_, _>>().map(MetadataValue::Integers)
            }
        }
    }

    fn float(&mut self, kind: u32) -> Result<f32, GgufError> {
        match self.single(kind)? {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "lists of floats are 32 bits in every known file"
            )]
            MetadataValue::Float(number) => Ok(number as f32),
            _ => Err(malformed("a list changes its type")),
        }
    }

    fn integer(&mut self, kind: u32) -> Result<i64, GgufError> {
        match self.single(kind)? {
            MetadataValue::Integer(number) => {
                i64::try_from(number).map_err(|_| malformed("a number is too large"))
            }
            MetadataValue::Bool(flag) => Ok(i64::from(flag)),
            _ => Err(malformed("a list changes its type")),
        }
    }
}
