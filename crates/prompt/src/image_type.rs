//! The media type of an image in a `data:` URL, as its own first bytes say it. Callers write `image/jpg`, `image/PNG` or the wrong one;
//! providers that name a type take only its right name, and some compare it with the bytes.

use crate::encoded_bytes::EncodedBytes;

/// Other names that are in use.
const OTHER_NAMES: [(&str, &str); 4] = [
    ("image/jpg", "image/jpeg"),
    ("image/pjpeg", "image/jpeg"),
    ("image/x-png", "image/png"),
    ("image/x-webp", "image/webp"),
];
/// What is written where nobody knew.
const UNKNOWN: [&str; 3] = ["", "application/octet-stream", "binary/octet-stream"];

/// The URL with its image's right media type; what is no image in base 64 stays as it is.
pub fn with_media_type(url: String) -> String {
    let Some((kind, text)) = url.strip_prefix("data:").and_then(|data| data.split_once(',')) else {
        return url;
    };
    let parts = kind.len().checked_sub(";base64".len()).and_then(|at| kind.split_at_checked(at));
    let Some((kind, _)) = parts.filter(|(_, mark)| mark.eq_ignore_ascii_case(";base64")) else { return url };
    let stated = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if !stated.starts_with("image/") && !UNKNOWN.contains(&stated.as_str()) {
        return url;
    }
    let known = OTHER_NAMES.iter().find(|(name, _)| *name == stated).map(|(_, right)| *right);
    let right = of_bytes(&EncodedBytes::of(text)).or(known).unwrap_or(&stated);
    if right.is_empty() { url } else { format!("data:{right};base64,{text}") }
}

fn of_bytes(bytes: &EncodedBytes<'_>) -> Option<&'static str> {
    if bytes.starts_with(0, b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if bytes.starts_with(0, b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if bytes.starts_with(0, b"GIF8") {
        Some("image/gif")
    } else if bytes.starts_with(0, b"RIFF") && bytes.starts_with(8, b"WEBP") {
        Some("image/webp")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expected: &str) {
        assert_eq!(with_media_type(url.to_owned()), expected);
    }

    #[test]
    fn an_image_has_the_type_that_its_bytes_say() {
        check("data:image/jpg;base64,/9j/4AAQ", "data:image/jpeg;base64,/9j/4AAQ");
        check("data:image/PNG;base64,iVBORw0KGgo=", "data:image/png;base64,iVBORw0KGgo=");
        check("data:image/jpeg;base64,iVBORw0KGgo=", "data:image/png;base64,iVBORw0KGgo=");
        check("data:application/octet-stream;base64,R0lGODlh", "data:image/gif;base64,R0lGODlh");
        check(
            "data:image/webp;name=a.webp;base64,UklGRgAAAABXRUJQ",
            "data:image/webp;base64,UklGRgAAAABXRUJQ",
        );
        check("data:;base64,/9j/4AAQ", "data:image/jpeg;base64,/9j/4AAQ");
    }

    #[test]
    fn what_the_bytes_do_not_say_is_named_as_it_is_known() {
        check("data:image/JPG;base64,AAAA", "data:image/jpeg;base64,AAAA");
        check("data:image/heic;base64,AAAA", "data:image/heic;base64,AAAA");
    }

    #[test]
    fn whatever_is_no_image_stays() {
        for url in [
            "https://example.com/a.jpg",
            "data:application/pdf;base64,iVBORw0KGgo=",
            "data:image/jpg,AAAA",
            "data:,x",
            "data:;base64,AAAA",
            "data:ü;base6ü,AAAA",
            "",
        ] {
            check(url, url);
        }
    }
}
