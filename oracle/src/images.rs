//! The reader of images' sizes, against the crate `imagesize`.
//!
//! Money is set aside by what ours says. Where a file states two sizes it says the larger, and where it is in doubt nothing at all;
//! so it may never say less than another reader, whether that one skips what is no base 64 or not.

use crate::{Subject, same};

/// A width and a height.
type Size = (u64, u64);

/// A reader's way from an image's `data:` URL to its size.
type Read = fn(&str) -> Option<Size>;

macro_rules! subjects {
    ($($planted:ident),* $(,)?) => {
        subjects! { @checks [sound $($planted)*] $($planted)* }
    };
    (@checks [$($copy:ident)*] $($planted:ident)*) => {
        /// The reader's checks.
        pub const SUBJECT: Subject = Subject {
            name: "images",
            sound: |bytes| check(bytes, subjects!(@read sound)),
            planted: &[$((stringify!($planted), |bytes| check(bytes, subjects!(@read $planted)))),*],
            words: WORDS,
        };
    };
    (@read $copy:ident) => {
        |url| {
            let size = $copy::image_size::of_data_url(url)?;
            Some((size.width.into(), size.height.into()))
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/images.rs"));

const WORDS: &[&[u8]] = &[
    b"data:image/png;base64,",
    b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x04\0\0\0\x03\0",
    b"\xff\xd8\xff",
    b"\xff\xc0\0\x08\x08\x03\0\x04\0\x01",
    b"\xff\xc2\0\x0b\x08\0\x01\0\x02\x01\x01\x11\0",
    b"\xff\xe1\0\x04ab",
    b"\xff\xda",
    b"GIF89a\0\x04\0\x03\0\0\0",
    b"\x2c\0\0\0\0\x01\0\x01\0",
    b"\x21\xfe\x01a\0",
    b"RIFF\0\0\0\0WEBP",
    b"VP8X\x0a\0\0\0\0\0\0\0\xff\x03\0\xff\x02\0",
    b"VP8L\0\0\0\0\x2f\xff\xc3\xbf\0",
    b"VP8 \0\0\0\0\0\0\0\x9d\x01\x2a\0\x04\0\x03",
    b" ",
    b"\n",
    b"\0\0",
    b"\xff",
];

fn check(bytes: &[u8], read: Read) -> Result<(), String> {
    let written = std::str::from_utf8(bytes).ok().filter(|text| text.starts_with("data:"));
    let url = written.map_or_else(|| format!("data:image/x;base64,{}", encoded(bytes)), str::to_owned);
    let Some(size) = read(&url) else { return Ok(()) };
    let text = url.split_once(',').map_or("", |(_, text)| text);
    let whole = text.find(|letter| value(letter).is_none()).unwrap_or(text.len());
    for text in [text, &text[..whole]] {
        let image = decoded(text);
        if let Some(foreign) = foreign(&image) {
            let is_enough = foreign.0 <= size.0 && foreign.1 <= size.1;
            same(&is_enough, &true, format_args!("{size:?} against imagesize's {foreign:?}"))?;
            if image.starts_with(b"\x89PNG") {
                same(&size, &foreign, "a PNG against imagesize")?;
            }
        }
    }
    Ok(())
}

fn foreign(image: &[u8]) -> Option<Size> {
    let size = imagesize::blob_size(image).ok()?;
    // It takes the two bits by which a lossy WebP may be scaled for its size.
    let sides = if image.get(12..16) == Some(b"VP8 ") { 0x3fff } else { usize::MAX };
    Some(((size.width & sides).try_into().ok()?, (size.height & sides).try_into().ok()?))
}

const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// In base 64, without what fills up the last group.
fn encoded(bytes: &[u8]) -> String {
    let letters = ALPHABET.as_bytes();
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| usize::from(byte >> (7 - at % 8) & 1));
    let digits = (0..(bytes.len() * 8).div_ceil(6))
        .map(|digit| (0..6).fold(0, |sum, at| sum << 1 | bit(digit * 6 + at)));
    digits.map(|digit| char::from(letters[digit])).collect()
}

/// The bytes of a text, as those read it who skip what is no base 64.
fn decoded(text: &str) -> Vec<u8> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for digit in text.chars().filter_map(value) {
        (bits, count) = (bits << 6 | digit, count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff).try_into().unwrap_or(0));
            bits &= (1 << count) - 1;
        }
    }
    bytes
}

fn value(letter: char) -> Option<u32> {
    let place = if letter.is_ascii() { ALPHABET.find(letter)? } else { return None };
    u32::try_from(place).ok()
}
