//! The reader of model files, against a slow one that keeps everything in wide numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::{Subject, same};

/// A value of the file's metadata.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Integer(i128),
    Float(f64),
    Flag(bool),
    Text(String),
    Integers(Vec<i64>),
    Floats(Vec<f32>),
    Texts(Vec<String>),
}

/// What is told of one key: each kind of value, where it is of that kind. Floats by their bits, for some are no numbers.
#[derive(Debug, Default, PartialEq)]
struct Told {
    text: Option<String>,
    integer: Option<u32>,
    float: Option<u32>,
    flag: Option<bool>,
    texts: Option<Vec<String>>,
    integers: Option<Vec<i64>>,
    floats: Option<Vec<u32>>,
}

/// A tensor: how its numbers are stored, its rows and columns, and its bytes.
type Tensor = (u32, usize, usize, Vec<u8>);

/// A reader of model files.
trait Read: Sized {
    fn read(bytes: &[u8]) -> Option<Self>;
    fn told(&self, key: &str) -> Told;
    fn tensor(&self, name: &str) -> Option<Tensor>;
    fn is_whole(&self) -> bool;
}

macro_rules! subjects {
    ($($planted:ident),* $(,)?) => {
        subjects! { @read sound }
        $(subjects! { @read $planted })*

        /// The reader's checks.
        pub const SUBJECT: Subject = Subject {
            name: "gguf",
            sound: check::<sound::Gguf>,
            planted: &[$((stringify!($planted), check::<$planted::Gguf>)),*],
            words: WORDS,
        };
    };
    (@read $copy:ident) => {
        impl Read for $copy::Gguf {
            fn read(bytes: &[u8]) -> Option<Self> {
                $copy::Gguf::from_bytes(Arc::from(bytes)).ok()
            }
            fn told(&self, key: &str) -> Told {
                Told {
                    text: self.text(key).map(str::to_owned),
                    integer: self.integer(key),
                    float: self.float(key).map(f32::to_bits),
                    flag: self.flag(key),
                    texts: self.texts(key).map(<[String]>::to_vec),
                    integers: self.integers(key).map(<[i64]>::to_vec),
                    floats: self.floats(key).map(bits),
                }
            }
            fn tensor(&self, name: &str) -> Option<Tensor> {
                let tensor = self.tensor(name).ok()?;
                let kind = tensor.kind.ggml();
                Some((kind, tensor.rows, tensor.columns, tensor.read().ok()?.into_owned()))
            }
            fn is_whole(&self) -> bool {
                self.check_tensors().is_ok()
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/gguf.rs"));

const WORDS: &[&[u8]] = &[
    b"GGUF\x03\0\0\0",
    b"\x01\0\0\0\0\0\0\0",
    b"\x02\0\0\0\0\0\0\0a\0",
    b"\x01\0\0\0\0\0\0\0b",
    b"\x04\0\0\0",
    b"\x08\0\0\0",
    b"\x09\0\0\0",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\0\0\0\x80",
    b"\x11\0\0\0\0\0\0\0general.alignment",
    b"\x20\0\0\0\0\0\0\0",
    b"\0\0\0\0",
];

fn check<R: Read>(bytes: &[u8]) -> Result<(), String> {
    let (read, slow) = (R::read(bytes), Slow::read(bytes));
    same(&read.is_some(), &slow.is_some(), "whether it can be read")?;
    let (Some(read), Some(slow)) = (read, slow) else { return Ok(()) };
    for (key, value) in &slow.metadata {
        same(&read.told(key), &told(value), key)?;
    }
    same(&read.told("\u{1}absent"), &Told::default(), "what is not there")?;
    for name in slow.tensors.keys() {
        same(&read.tensor(name), &slow.tensor(name, bytes), name)?;
    }
    let is_whole = slow.tensors.keys().all(|name| slow.tensor(name, bytes).is_some());
    same(&read.is_whole(), &is_whole, "whether every tensor is there")
}

fn bits(floats: &[f32]) -> Vec<u32> {
    floats.iter().map(|float| float.to_bits()).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "the reader gives out 32 bits")]
fn told(value: &Value) -> Told {
    let nothing = Told::default();
    match value {
        Value::Integer(number) => {
            let float = Some((*number as f32).to_bits());
            Told { integer: u32::try_from(*number).ok(), float, ..nothing }
        }
        Value::Float(number) => Told { float: Some((*number as f32).to_bits()), ..nothing },
        Value::Flag(flag) => Told { flag: Some(*flag), ..nothing },
        Value::Text(text) => Told { text: Some(text.clone()), ..nothing },
        Value::Integers(list) => {
            // One that is said again and again is one.
            let distinct: BTreeSet<_> = list.iter().collect();
            let only = (distinct.len() == 1).then(|| list[0]);
            let integer = only.and_then(|number| u32::try_from(number).ok());
            Told { integers: Some(list.clone()), integer, ..nothing }
        }
        Value::Floats(list) => Told { floats: Some(bits(list)), ..nothing },
        Value::Texts(list) => Told { texts: Some(list.clone()), ..nothing },
    }
}

/// A whole file.
struct Slow {
    metadata: BTreeMap<String, Value>,
    /// How each is stored, its dimensions, and where it begins behind the header.
    tensors: BTreeMap<String, (u32, Vec<u64>, u64)>,
    header: u128,
}

impl Slow {
    fn read(bytes: &[u8]) -> Option<Slow> {
        let mut rest = bytes.strip_prefix(b"GGUF")?;
        if !matches!(number(&mut rest, 4)?, 2 | 3) {
            return None;
        }
        let (tensors, keys) = (number(&mut rest, 8)?, number(&mut rest, 8)?);
        let mut slow = Slow { metadata: BTreeMap::new(), tensors: BTreeMap::new(), header: 0 };
        for _ in 0..keys {
            let key = text(&mut rest)?;
            let kind = number(&mut rest, 4)?;
            let value = if kind == 9 { list(&mut rest)? } else { single(&mut rest, kind)? };
            slow.metadata.insert(key, value);
        }
        for _ in 0..tensors {
            let name = text(&mut rest)?;
            let count = Some(number(&mut rest, 4)?).filter(|count| *count <= 4)?;
            let sizes = (0..count).map(|_| number(&mut rest, 8)).collect::<Option<_>>()?;
            let kind = u32::try_from(number(&mut rest, 4)?).ok()?;
            slow.tensors.insert(name, (kind, sizes, number(&mut rest, 8)?));
        }
        let alignment = match slow.metadata.get("general.alignment") {
            None => 32,
            Some(Value::Integer(number)) => u128::try_from(*number).ok()?,
            Some(_) => return None,
        };
        let read = (bytes.len() - rest.len()) as u128;
        slow.header =
            read.checked_next_multiple_of(Some(alignment).filter(|number| number.is_power_of_two())?)?;
        (alignment <= u128::from(u64::MAX) && slow.header <= u128::from(u64::MAX)).then_some(slow)
    }

    fn tensor(&self, name: &str, bytes: &[u8]) -> Option<Tensor> {
        let (kind, sizes, offset) = self.tensors.get(name)?;
        let columns = u128::from(sizes.first().copied().unwrap_or(1));
        // The reader counts in 64 bits, even where nothing is left of it in the end.
        let counted = |number: u128| (number <= u128::from(u64::MAX)).then_some(number);
        let rows = sizes.iter().skip(1).try_fold(1, |rows, size| counted(rows * u128::from(*size)))?;
        let row = counted(match kind {
            0 => columns * 4,
            1 => columns * 2,
            30 => columns * 2,
            _ => {
                let (numbers, bytes) = block(*kind)?;
                if columns % numbers != 0 {
                    return None;
                }
                columns / numbers * bytes
            }
        })?;
        let from = self.header + u128::from(*offset);
        let to = from + counted(row * rows)?;
        let data = bytes.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)?;
        Some((*kind, usize::try_from(rows).ok()?, usize::try_from(columns).ok()?, data.to_vec()))
    }
}

/// How many numbers are in a block of a format by ggml's number, and in how many bytes.
fn block(kind: u32) -> Option<(u128, u128)> {
    let (scale, nibbles, fifth_bits) = (2, 16, 4);
    Some(match kind {
        2 | 20 => (32, scale + nibbles),
        3 => (32, 2 * scale + nibbles),
        6 => (32, scale + fifth_bits + nibbles),
        7 => (32, 2 * scale + fifth_bits + nibbles),
        8 => (32, scale + 32),
        12 => (256, 2 * scale + 12 + 8 * nibbles),
        13 => (256, 2 * scale + 12 + 8 * fifth_bits + 8 * nibbles),
        14 => (256, scale + 16 + 64 + 8 * nibbles),
        39 => (32, 1 + nibbles),
        _ => return None,
    })
}

/// A whole number of so many bytes, the least first.
fn number(rest: &mut &[u8], length: usize) -> Option<u64> {
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The same with a sign.
fn signed(rest: &mut &[u8], length: u32) -> Option<i128> {
    let number = i128::from(number(rest, length as usize)?);
    let limit = 1_i128 << (8 * length - 1);
    Some(if number < limit { number } else { number - 2 * limit })
}

fn text(rest: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(number(rest, 8)?).ok()?;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

fn single(rest: &mut &[u8], kind: u64) -> Option<Value> {
    Some(match kind {
        0 => Value::Integer(number(rest, 1)?.into()),
        1 => Value::Integer(signed(rest, 1)?),
        2 => Value::Integer(number(rest, 2)?.into()),
        3 => Value::Integer(signed(rest, 2)?),
        4 => Value::Integer(number(rest, 4)?.into()),
        5 => Value::Integer(signed(rest, 4)?),
        6 => Value::Float(f32::from_bits(u32::try_from(number(rest, 4)?).ok()?).into()),
        7 => Value::Flag(number(rest, 1)? != 0),
        8 => Value::Text(text(rest)?),
        10 => Value::Integer(number(rest, 8)?.into()),
        11 => Value::Integer(signed(rest, 8)?),
        12 => Value::Float(f64::from_bits(number(rest, 8)?)),
        _ => return None,
    })
}

/// A list of one kind; of what stands in a list all whole numbers, flags among them, fit 64 bits with a sign.
fn list(rest: &mut &[u8]) -> Option<Value> {
    let (kind, length) = (number(rest, 4)?, number(rest, 8)?);
    // No value is shorter than a byte.
    if length > rest.len() as u64 {
        return None;
    }
    let values = (0..length).map(|_| single(rest, kind)).collect::<Option<Vec<_>>>()?;
    Some(match kind {
        6 | 12 => Value::Floats(values.iter().filter_map(float).collect()),
        8 => Value::Texts(values.into_iter().filter_map(written).collect()),
        9 => return None,
        _ => Value::Integers(values.iter().map(integer).collect::<Option<_>>()?),
    })
}

#[expect(clippy::cast_possible_truncation, reason = "the reader gives out 32 bits")]
fn float(value: &Value) -> Option<f32> {
    if let Value::Float(number) = value { Some(*number as f32) } else { None }
}

fn written(value: Value) -> Option<String> {
    if let Value::Text(text) = value { Some(text) } else { None }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(number) => i64::try_from(*number).ok(),
        Value::Flag(flag) => Some(i64::from(*flag)),
        _ => None,
    }
}
