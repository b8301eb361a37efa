//! Reads an image's size out of the first bytes of its `data:` URL, without decoding it: PNG, JPEG, GIF and WebP.
//!
//! The bytes are a stranger's. What is not where it belongs has no size, and counts as the largest image there is. Where a file
//! states two sizes, the larger counts.

use stint_types::catalog::ImageSize;

use crate::encoded_bytes::EncodedBytes;

/// All that comes before the picture of a WebP.
const WEBP_HEADER: usize = 30;
/// No file of a usual encoder has so many parts before its picture.
const PARTS_MAX: usize = 1024;

/// The size of the image in a `data:` URL, where it can be read.
pub(crate) fn of_data_url(url: &str) -> Option<ImageSize> {
    let (kind, text) = url
        .split_at_checked(5)
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("data:"))?
        .1
        .split_once(',')?;
    kind.ends_with(";base64").then(|| size(&EncodedBytes::of(text)))?
}

fn size(bytes: &EncodedBytes<'_>) -> Option<ImageSize> {
    if bytes.starts_with(0, b"\x89PNG\r\n\x1a\n") {
        png(bytes)
    } else if bytes.starts_with(0, b"\xff\xd8\xff") {
        jpeg(bytes)
    } else if bytes.starts_with(0, b"GIF8") {
        gif(bytes)
    } else if bytes.starts_with(0, b"RIFF") && bytes.starts_with(8, b"WEBP") {
        webp(bytes)
    } else {
        None
    }
}

fn png(bytes: &EncodedBytes<'_>) -> Option<ImageSize> {
    if !bytes.starts_with(12, b"IHDR") {
        return None;
    }
    real(bytes.big(16, 4)?, bytes.big(20, 4)?)
}

/// Every frame header until the picture begins, since decoders differ in which of two they take.
fn jpeg(bytes: &EncodedBytes<'_>) -> Option<ImageSize> {
    let (mut at, mut largest) = (2, None);
    for _ in 0..PARTS_MAX {
        if bytes.byte(at)? != 0xff {
            return None;
        }
        match bytes.byte(at + 1)? {
            // Decoders skip it as rubbish, and find the next part behind its two bytes.
            0x00 => return None,
            // What fills up, and what has no length.
            0xff => at += 1,
            0x01 | 0xd0..=0xd8 => at += 2,
            0xd9 | 0xda => return largest.filter(|_| bytes.is_plain_until(at)),
            kind => {
                if is_frame(kind) {
                    let frame = real(bytes.big(at + 7, 2)?, bytes.big(at + 5, 2)?)?;
                    largest = Some(largest.map_or(frame, |other| larger(frame, other)));
                }
                at += 2 + usize::try_from(bytes.big(at + 2, 2)?).ok()?.max(2);
            }
        }
    }
    None
}

/// Those of `0xc0` to `0xcf` that are no tables.
fn is_frame(kind: u8) -> bool {
    (0xc0..=0xcf).contains(&kind) && !matches!(kind, 0xc4 | 0xc8 | 0xcc)
}

/// The screen, and the first picture on it, which may be larger.
fn gif(bytes: &EncodedBytes<'_>) -> Option<ImageSize> {
    let screen = ImageSize { width: bytes.little(6, 2)?, height: bytes.little(8, 2)? };
    let mut at = 13 + colours(bytes.byte(10)?);
    for _ in 0..PARTS_MAX {
        match bytes.byte(at)? {
            0x21 => at = after_blocks(bytes, at + 2)?,
            0x2c => {
                let reach =
                    |place: usize, side: usize| Some(bytes.little(place, 2)? + bytes.little(side, 2)?);
                let picture = ImageSize { width: reach(at + 1, at + 5)?, height: reach(at + 3, at + 7)? };
                let size = larger(screen, picture);
                return real(size.width, size.height).filter(|_| bytes.is_plain_until(at));
            }
            _ => return None,
        }
    }
    None
}

/// How many bytes a table of colours has.
fn colours(flags: u8) -> usize {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

/// Where a list of blocks ends that begins there.
fn after_blocks(bytes: &EncodedBytes<'_>, mut at: usize) -> Option<usize> {
    for _ in 0..PARTS_MAX {
        let length = usize::from(bytes.byte(at)?);
        at += 1 + length;
        if length == 0 {
            return Some(at);
        }
    }
    None
}

fn webp(bytes: &EncodedBytes<'_>) -> Option<ImageSize> {
    if !bytes.is_plain_until(WEBP_HEADER) {
        return None;
    }
    if bytes.starts_with(12, b"VP8X") {
        real(bytes.little(24, 3)? + 1, bytes.little(27, 3)? + 1)
    } else if bytes.starts_with(12, b"VP8L") && bytes.byte(20) == Some(0x2f) {
        let sides = bytes.little(21, 4)?;
        real((sides & 0x3fff) + 1, (sides >> 14 & 0x3fff) + 1)
    } else if bytes.starts_with(12, b"VP8 ") && bytes.starts_with(23, b"\x9d\x01\x2a") {
        real(bytes.little(26, 2)? & 0x3fff, bytes.little(28, 2)? & 0x3fff)
    } else {
        None
    }
}

/// A size that an image can have.
fn real(width: u32, height: u32) -> Option<ImageSize> {
    (width > 0 && height > 0).then_some(ImageSize { width, height })
}

fn larger(one: ImageSize, other: ImageSize) -> ImageSize {
    ImageSize { width: one.width.max(other.width), height: one.height.max(other.height) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::encoded_bytes::encode;

    fn read(bytes: &[u8]) -> Option<(u32, u32)> {
        of_data_url(&format!("data:image/x;base64,{}", encode(bytes))).map(|size| (size.width, size.height))
    }

    fn check(parts: &[&[u8]], expected: Option<(u32, u32)>) {
        assert_eq!(read(&parts.concat()), expected, "{parts:x?}");
    }

    #[test]
    fn the_size_stands_in_the_header_of_every_usual_format() {
        let sides: [&[u8]; 2] = [&[0, 0, 4, 0], &[0, 0, 3, 0]];
        check(&[b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", sides[0], sides[1], b"\x08\x06"], Some((1024, 768)));
        let frame: &[u8] = &[0xff, 0xc2, 0, 11, 8, 3, 0, 4, 0, 1, 1, 0x11, 0];
        check(&[b"\xff\xd8\xff\xe0\0\x04ab", frame, &[0xff, 0xda]], Some((1024, 768)));
        check(&[b"GIF89a\0\x04\0\x03\0\0\0\x2c\0\0\0\0\x01\0\x01\0"], Some((1024, 768)));
        check(&[b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\x03\0\xff\x02\0"], Some((1024, 768)));
        check(&[b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\0\x04\0\x03"], Some((1024, 768)));
        let lossless = (1023_u32 | 767 << 14).to_le_bytes();
        check(&[b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f", &lossless], Some((1024, 768)));
    }

    #[test]
    fn of_two_sizes_the_larger_counts() {
        let frame = |side: u8| [0xff, 0xc0, 0, 8, 8, side, 0, side, 0, 1];
        check(&[b"\xff\xd8", &frame(16), &frame(1), &[0xff, 0xda]], Some((4096, 4096)));
        let first = b"GIF89a\x01\0\x01\0\0\0\0\x21\xfe\x01a\0\x2c\0\0\0\0\0\x04\0\x03";
        check(&[first], Some((1024, 768)));
    }

    /// IN-15: no pixel is decoded: the size is read from the header, and what has none costs the most.
    #[test]
    fn what_is_cut_off_or_disguised_has_no_size() {
        check(&[b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x04"], None);
        check(&[b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\0\0\0\0\x01"], None);
        check(&[b"\xff\xd8\xff\xda"], None);
        // Decoders skip two bytes of it, and find what is hidden in its stated length.
        let decoy: &[u8] = &[0xff, 0xc0, 0, 8, 8, 0, 1, 0, 1, 1, 0xff, 0xda];
        check(&[b"\xff\xd8\xff\x00\0\x04ab", decoy], None);
        check(&[b"II*\0"], None);
        assert_eq!(of_data_url("data:,x"), None);
        assert_eq!(of_data_url("https://example.com/a.png"), None);
        // A character that only some decoders skip moves what stands behind it.
        let segment = [0xff, 0xe1, 0x04, 0x02].iter().copied().chain([0; 1024]).collect::<Vec<u8>>();
        let plain = encode(
            &[&[0xff, 0xd8][..], &segment, &[0xff, 0xc0, 0, 8, 8, 1, 0, 1, 0, 1, 0xff, 0xda]].concat(),
        );
        assert!(of_data_url(&format!("data:image/jpeg;base64,{plain}")).is_some());
        let moved = format!("{}    {}", &plain[..100], &plain[104..]);
        assert_eq!(of_data_url(&format!("data:image/jpeg;base64,{moved}")), None);
    }

    proptest! {
        /// IN-15: whatever the bytes are.
        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..600), start in 0..5_usize) {
            let starts: [&[u8]; 5] = [b"", b"\xff\xd8", b"GIF89a", b"RIFF\0\0\0\0WEBP", b"\x89PNG\r\n\x1a\n"];
            read(&[starts[start], &bytes].concat());
        }

        #[test]
        fn no_url_is_too_strange(url in "(data:)?[a-z;,/=]{0,20}(;base64,)?.{0,60}") {
            of_data_url(&url);
        }
    }
}
