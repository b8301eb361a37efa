//! How many tokens an image or a sound has at most.

use serde_json::Value;

use stint_types::catalog::{ImageDetail, ImageTokens};

use crate::encoded_bytes::EncodedBytes;
use crate::image_size;

/// An image of a usual size, as Anthropic and OpenAI count it.
const IMAGE: f64 = 1_000.0;
/// So many characters of a file in base 64 are usually a token: a judgement.
const FILE_TOKEN: f64 = 64.0;
/// What a template puts around an image or a sound.
const MARKS: u64 = 16;
/// No provider counts more for a second of sound (Gemini 32, Qwen 25, Mistral 12.5, OpenAI 10).
const SOUND_SECOND: u64 = 40;
/// A sound, a document or a film whose length cannot be bounded by its bytes: the nine and a half hours of sound that Gemini takes
/// at most are more than the pages and minutes that others do.
const MEDIA_MAX: u64 = 34_200 * SOUND_SECOND;

/// About how many tokens an image, a sound or a file has. A file is judged by its length, since its pages cannot be counted; how
/// many bytes a page takes differs widely, so this is a rough guess. All else counts as an image of a usual size.
pub(crate) fn usual(part: &Value) -> f64 {
    let data = part.pointer("/file/file_data").and_then(Value::as_str).map_or(0, str::len);
    let letters = u32::try_from(data).unwrap_or(u32::MAX);
    (f64::from(letters) / FILE_TOKEN).max(IMAGE)
}

/// The tokens of a part that is an image, a sound or a file; nothing for another.
pub(crate) fn tokens(part: &Value, images: &ImageTokens) -> Option<u64> {
    match part.get("type").and_then(Value::as_str)? {
        kind if kind.contains("image") => Some(image(part, images)),
        "input_audio" => Some(sound(part)),
        // A few bytes may be a page, and any number of pages.
        "file" => Some(MEDIA_MAX + MARKS),
        _ => None,
    }
}

/// The tokens of an image that is not in the part itself, so that another may stand at its address now; 0 for anything else.
pub(crate) fn tokens_elsewhere(part: &Value, images: &ImageTokens) -> u64 {
    let is_image = part.get("type").and_then(Value::as_str).is_some_and(|kind| kind.contains("image"));
    let is_inline = address(part).is_some_and(|url| url.starts_with("data:"));
    if part.pointer("/file/file_url").is_some() {
        MEDIA_MAX + MARKS
    } else if is_image && !is_inline {
        image(part, images)
    } else {
        0
    }
}

fn address(part: &Value) -> Option<&str> {
    part.pointer("/image_url/url").and_then(Value::as_str)
}

/// Some providers take documents and films where an image belongs.
fn is_image_url(url: &str) -> bool {
    let kind =
        url.split_once(':').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("data")).map(|(_, kind)| kind);
    kind.is_none_or(|kind| kind.get(..6).is_some_and(|kind| kind.eq_ignore_ascii_case("image/")))
}

fn image(part: &Value, images: &ImageTokens) -> u64 {
    if !address(part).is_none_or(is_image_url) {
        return MEDIA_MAX + MARKS;
    }
    let detail = ImageDetail::of(part.pointer("/image_url/detail").and_then(Value::as_str));
    let size = images.rule.and(address(part)).and_then(image_size::of_data_url);
    images.bound(size, detail).0.saturating_add(MARKS)
}

/// By its length, where its format has one that its bytes bound.
fn sound(part: &Value) -> u64 {
    let data = part.pointer("/input_audio/data").and_then(Value::as_str).unwrap_or_default();
    let bytes = EncodedBytes::of(data);
    wav(&bytes).or_else(|| mp3(&bytes)).map_or(MEDIA_MAX, |tokens| tokens.min(MEDIA_MAX)) + MARKS
}

/// Uncompressed samples: as many seconds as there are bytes for.
fn wav(bytes: &EncodedBytes<'_>) -> Option<u64> {
    let is_wav =
        bytes.starts_with(0, b"RIFF") && bytes.starts_with(8, b"WAVEfmt ") && bytes.is_plain_until(36);
    // Whole numbers, and fractions.
    let is_plain = matches!(bytes.little(20, 2)?, 1 | 3);
    let (channels, rate, block) = (bytes.little(22, 2)?, bytes.little(24, 4)?, bytes.little(32, 2)?);
    let block = block.min(channels.saturating_mul(bytes.little(34, 2)?) / 8);
    let second = u64::from(block).saturating_mul(u64::from(rate));
    (is_wav && is_plain && second > 0).then(|| {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        length.saturating_mul(SOUND_SECOND).div_ceil(second).saturating_add(SOUND_SECOND)
    })
}

/// A token a byte: a frame lasts 0.144 s at most (5.8 tokens), and has more bytes than that.
fn mp3(bytes: &EncodedBytes<'_>) -> Option<u64> {
    let start = if bytes.starts_with(0, b"ID3") { 10 + tag_length(bytes)? } else { 0 };
    let is_frame = bytes.byte(start)? == 0xff && bytes.byte(start + 1)? & 0xe0 == 0xe0;
    (is_frame && bytes.is_plain_until(start)).then(|| u64::try_from(bytes.len()).unwrap_or(u64::MAX))
}

/// How long what is said about a sound is: four bytes of seven bits.
fn tag_length(bytes: &EncodedBytes<'_>) -> Option<usize> {
    (6..10).try_fold(0, |sum, at| Some(sum << 7 | usize::from(bytes.byte(at)? & 0x7f)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::encoded_bytes::encode;
    use stint_types::catalog::ImageRule;
    use stint_types::units::Tokens;

    const TILES: ImageTokens =
        ImageTokens { max: Tokens(48_169), rule: Some(ImageRule::Tiles { base: 2833, tile: 5667 }) };

    fn check_image(image: &Value, images: &ImageTokens, expected: u64) {
        let part = json!({ "type": "image_url", "image_url": image });
        assert_eq!(tokens(&part, images), Some(expected + MARKS), "{part}");
    }

    fn check_sound(bytes: &[&[u8]], expected: u64) {
        let sound = json!({ "data": encode(&bytes.concat()), "format": "wav" });
        let part = json!({ "type": "input_audio", "input_audio": sound });
        assert_eq!(tokens(&part, &TILES), Some(expected + MARKS));
    }

    #[test]
    fn an_image_costs_its_size_where_that_can_be_read_and_not_its_bytes() {
        let header = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x02\0\0\0\x02\0";
        let small = format!("data:image/png;base64,{}", encode(header));
        let long = format!("data:image/png;base64,{}", "A".repeat(1 << 20));
        check_image(&json!({ "url": small }), &TILES, 8500);
        check_image(&json!({ "url": small }), &ImageTokens::default(), 65_536);
        check_image(&json!({ "url": long }), &TILES, 48_169);
        check_image(&json!({ "url": "https://example.com/a.png" }), &TILES, 48_169);
        check_image(
            &json!({ "url": "data:application/pdf;base64,AA==", "detail": "low" }),
            &TILES,
            MEDIA_MAX,
        );
        check_image(&json!({ "url": "https://example.com/a.png", "detail": "low" }), &TILES, 2833);
    }

    #[test]
    fn a_sound_costs_its_length() {
        let wav = |rate: u32| {
            let head = [&b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0"[..], &rate.to_le_bytes()].concat();
            [head, b"\xff\xff\xff\xff\x02\0\x10\0".to_vec(), vec![0; 96_000 - 36]].concat()
        };
        check_sound(&[&wav(24_000)], 2 * SOUND_SECOND + SOUND_SECOND);
        // What says that it is slow lasts longer.
        check_sound(&[&wav(1)], MEDIA_MAX);
        let frame = [0xff, 0xfb, 0x90, 0];
        check_sound(&[&frame, &[0; 2996]], 3000);
        check_sound(&[b"ID3\x04\0\0\0\0\0\x02ab", &frame, &[0; 2984]], 3000);
        check_sound(&[b"ID3\x04\0\0\0\0\0\x02abfLaC", &[0; 3000]], MEDIA_MAX);
        check_sound(&[b"OggS"], MEDIA_MAX);
    }
}
