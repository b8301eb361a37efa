//! Which addresses of images go to an upstream, which fetches them: a caller must not have it fetch what only it can reach.
//!
//! Only what an address itself says is looked at. A name that leads to a private address is the engine's to refuse: what it
//! finds when it asks may be another than what we would find.

mod host;

use serde_json::{Map, Value};

use stint_types::chat::{ContentPart, Message};

use super::error::ApiError;

use host::is_public;

/// Where images may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ImageUrls {
    /// In the request alone.
    Data,
    /// At public hosts over `https:` too.
    #[default]
    Https,
    /// At public hosts over `http:` too.
    Http,
    /// At any host, private ones too.
    Private,
}

impl ImageUrls {
    /// Refuses items that have an image elsewhere. They come from the member `path`, or else from what was stored earlier and comes
    /// in by another member.
    ///
    /// # Errors
    /// 400 that names the member and the remedy.
    pub(super) fn check_items<'p>(
        self,
        parts: impl Iterator<Item = &'p ContentPart>,
        (path, items): (&str, &[Value]),
        stored: &str,
    ) -> Result<(), ApiError> {
        self.first_refused(parts).map_or(Ok(()), |refused| {
            let named = items
                .iter()
                .enumerate()
                .find_map(|(at, item)| path_of(refused.url, &format!("{path}[{at}]"), item));
            Err(ApiError::invalid(Some(named.as_deref().unwrap_or(stored)), refused.why))
        })
    }

    /// The first address that is refused.
    pub(super) fn first_refused<'p>(
        self,
        mut parts: impl Iterator<Item = &'p ContentPart>,
    ) -> Option<RefusedUrl<'p>> {
        parts.find_map(|part| {
            let value = match part {
                ContentPart::Other(value) => value,
                ContentPart::Text(_)
                | ContentPart::AdditionStart { .. }
                | ContentPart::CacheBreakpoint(_) => {
                    return None;
                }
            };
            let text = |at| value.pointer(at).and_then(Value::as_str);
            let image = text("/image_url/url").and_then(|url| Some((url, self.refusal(url)?)));
            let refused = image.or_else(|| {
                let sound = text("/input_audio/data").filter(|data| is_address(data));
                sound.map(|data| (data, "must be the sound itself in base64, not an address"))
            });
            let refused = refused.or_else(|| {
                let url = text("/file/file_url")?;
                Some((url, self.refusal(url)?))
            });
            refused.map(|(url, why)| RefusedUrl { url, why })
        })
    }

    /// The first text in members that are only passed on which is an address that no image may have.
    pub(super) fn first_refused_member<'m>(self, members: &'m Map<String, Value>) -> Option<RefusedUrl<'m>> {
        members.values().find_map(|value| self.refused_in(value))
    }

    /// Refuses such a member, by its name.
    ///
    /// # Errors
    /// 400 that names the member.
    pub(super) fn check_members(self, members: &Map<String, Value>) -> Result<(), ApiError> {
        let refused = members.iter().find_map(|(name, value)| Some((name, self.refused_in(value)?)));
        refused.map_or(Ok(()), |(name, refused)| Err(ApiError::invalid(Some(name), refused.why)))
    }

    fn refused_in(self, value: &Value) -> Option<RefusedUrl<'_>> {
        match value {
            Value::String(url) => (has_scheme(url) && !self.may_pass(url))
                .then_some(RefusedUrl { url, why: "must not lead to a file or to a host of this network" }),
            Value::Array(items) => items.iter().find_map(|item| self.refused_in(item)),
            Value::Object(members) => members.values().find_map(|member| self.refused_in(member)),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }

    /// Schemas have addresses that nobody asks, so public ones pass whatever is said of images.
    fn may_pass(self, url: &str) -> bool {
        let setting = if self == ImageUrls::Private { self } else { ImageUrls::Http };
        setting.refusal(url).is_none()
    }

    /// Why an address is refused, and what to do instead.
    fn refusal(self, url: &str) -> Option<&'static str> {
        if url.starts_with("data:") {
            return None;
        }
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let is_secure = url.starts_with("https://");
        match (self, rest) {
            (ImageUrls::Data, _) => Some(
                "must be a data: URL: send the image or file itself, or ask the operator for image_urls = \"https\"",
            ),
            (_, None) => Some("must begin with https:// or data: in small letters; send the image or file itself as a data: URL"),
            (ImageUrls::Https, Some(_)) if !is_secure => Some(
                "must begin with https:// or data:; send the image or file itself as a data: URL, or ask the operator for image_urls = \"http\"",
            ),
            (ImageUrls::Private, Some(_)) => None,
            (ImageUrls::Https | ImageUrls::Http, Some(_)) => (!is_public(url)).then_some(
                "must lead to a public host, written plainly; send the image or file itself as a data: URL, or ask the operator for image_urls = \"private\"",
            ),
        }
    }
}

/// Whether it begins like an address that a server could ask: `scheme://`, or `file:` however it goes on. Readers of addresses leave
/// out what stands before them and cannot be seen, and tabs and ends of lines inside of them.
fn has_scheme(text: &str) -> bool {
    let text = text.trim_start_matches(|letter: char| letter.is_whitespace() || letter.is_control());
    if let Some(scheme) = scheme(text) {
        return scheme.len() <= 16;
    }
    // Of a text in several lines only this is taken for an address: any word may end a line with a colon.
    let joined = text.chars().filter(|letter| !matches!(letter, '\t' | '\r' | '\n')).take("https://".len());
    let joined: String = joined.collect();
    scheme(&joined).is_some_and(|scheme| FETCHED.iter().any(|fetched| scheme.eq_ignore_ascii_case(fetched)))
}

/// What is asked by a program that is told to.
const FETCHED: [&str; 4] = ["http", "https", "ftp", "file"];

/// The scheme of an address that a server could ask.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = !scheme.is_empty()
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    (is_scheme && (scheme.eq_ignore_ascii_case("file") || rest.starts_with("//"))).then_some(scheme)
}

/// Whether what should be base64 cannot be: it has what addresses and paths have.
fn is_address(data: &str) -> bool {
    !data.starts_with("data:") && data.bytes().any(|byte| matches!(byte, b':' | b'.' | b'%' | b'\\'))
}

/// An address, and why it is refused.
pub(super) struct RefusedUrl<'p> {
    pub(super) url: &'p str,
    pub(super) why: &'static str,
}

/// All parts of a conversation.
pub(super) fn parts(messages: &[Message]) -> impl Iterator<Item = &ContentPart> {
    messages.iter().flat_map(|message| &message.content)
}

/// Where in a body that text stands.
pub(super) fn path_of(text: &str, path: &str, value: &Value) -> Option<String> {
    match value {
        Value::String(written) => (written == text).then(|| path.to_owned()),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, item)| path_of(text, &format!("{path}[{at}]"), item))
        }
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            let dot = if path.is_empty() { "" } else { "." };
            path_of(text, &format!("{path}{dot}{name}"), member)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use stint_types::chat::{Request, Role};

    fn check(urls: ImageUrls, url: &str, is_allowed: bool) {
        assert_eq!(urls.refusal(url).is_none(), is_allowed, "{urls:?} {url:?}");
    }

    #[test]
    fn each_setting_allows_what_the_one_before_does_and_more() {
        let cases = [
            ("data:image/png;base64,AA==", 0),
            ("https://example.com/a.png", 1),
            ("http://example.com/a.png", 2),
            ("http://10.0.0.7/a.png", 3),
            ("https://images.internal/a.png", 3),
            ("file:///etc/passwd", 4),
            ("HTTPS://example.com/a.png", 4),
            (" https://example.com/a.png", 4),
            ("//example.com/a.png", 4),
            ("DATA:image/png;base64,AA==", 4),
            ("ftp://example.com/a.png", 4),
            ("", 4),
        ];
        let settings = [ImageUrls::Data, ImageUrls::Https, ImageUrls::Http, ImageUrls::Private];
        for (url, first) in cases {
            for (at, urls) in settings.into_iter().enumerate() {
                check(urls, url, at >= first);
            }
        }
    }

    /// IN-08: whatever fetches or opens what it is told to has no other way in.
    #[test]
    fn sound_is_no_address_and_members_that_are_passed_on_lead_nowhere_inside() {
        let check = |data: &str, is_allowed: bool| {
            let part = ContentPart::Other(json!({ "type": "input_audio", "input_audio": { "data": data } }));
            assert_eq!(ImageUrls::Private.first_refused([&part].into_iter()).is_none(), is_allowed, "{data}");
        };
        check("UklGRg+/==", true);
        check("data:audio/wav;base64,UklGRg==", true);
        for data in ["file:///etc/passwd", "https://169.254.169.254/x", "//10.0.0.1/x", "C:\\x"] {
            check(data, false);
        }
        let check = |value: Value, expected: [bool; 2]| {
            let members = Map::from_iter([("member".to_owned(), json!({ "inner": [value] }))]);
            let found = [ImageUrls::Https, ImageUrls::Private]
                .map(|urls| urls.first_refused_member(&members).is_none());
            assert_eq!(found, expected, "{members:?}");
        };
        for inside in ["https://169.254.169.254/x", "http://localhost", "https://kubernetes.default.svc/"] {
            check(json!(inside), [false, true]);
        }
        for never in [
            "file:///etc/passwd",
            " FILE:/etc/passwd",
            "gopher://10.0.0.1/",
            "\u{1}file:///etc/passwd",
            "fi\tle:///etc/passwd",
            "ht\ntp://169.254.169.254/",
            "\r\n\u{1f}https:\n//localhost/",
        ] {
            check(json!(never), [false, false]);
        }
        for nowhere in [
            "http://json-schema.org/draft-07/schema#",
            "a: b",
            "For example:\n// x",
            "Code:\n//",
            "note://",
            "12:30",
        ] {
            check(json!(nowhere), [nowhere != "note://"; 2]);
        }
    }

    #[test]
    fn the_member_is_named_or_else_what_brought_it() {
        let url = "file:///etc/passwd";
        let content = vec![ContentPart::Other(json!({ "type": "image_url", "image_url": { "url": url } }))];
        let request = Request::new("m", vec![Message { content, ..Message::text(Role::User, "") }]);
        let body = json!({ "messages": [{ "content": [{ "type": "text" }, { "source": { "url": url } }] }] });
        let refused = ImageUrls::Https.first_refused(parts(&request.messages)).unwrap();
        assert_eq!(path_of(refused.url, "", &body).as_deref(), Some("messages[0].content[1].source.url"));
        let check = |items: &[Value], expected: &str| {
            let parts = parts(&request.messages);
            let problem = ImageUrls::Https.check_items(parts, ("input", items), "conversation").unwrap_err();
            assert!(format!("{problem:?}").contains(&format!("\"{expected}\"")), "{problem:?}");
        };
        check(&[json!("x"), json!({ "content": [{ "image_url": url }] })], "input[1].content[0].image_url");
        check(&[], "conversation");
    }
}
