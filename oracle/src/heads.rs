//! The framing of requests, against a slow reader of the whole stream, against the crate `httparse`, and against itself cut
//! elsewhere.
//!
//! `httparse` is what hyper reads with. It takes more, so only what ours takes is held against it: there both must agree.

use crate::{Subject, cuts, pieces, same};

/// Where the requests of a stream end, in bytes from its beginning, or why it is not read any further.
type Made = (Vec<usize>, Option<String>);

/// A framing's way from pieces to requests.
trait Frame {
    fn frame(pieces: &[&[u8]]) -> Made;
}

const BYTES_MAX: usize = 200;
const LINES_MAX: usize = 4;

macro_rules! subjects {
    ($($planted:ident),* $(,)?) => {
        subjects! { @frame sound }
        $(subjects! { @frame $planted })*

        /// The framing's checks.
        pub const SUBJECT: Subject = Subject {
            name: "heads",
            sound: check::<sound::RequestFraming>,
            planted: &[$((stringify!($planted), check::<$planted::RequestFraming>)),*],
            words: WORDS,
        };
    };
    (@frame $copy:ident) => {
        impl Frame for $copy::RequestFraming {
            fn frame(pieces: &[&[u8]]) -> Made {
                let limits = $copy::HeadLimits { bytes: BYTES_MAX, lines: LINES_MAX };
                let (mut framing, mut head) = ($copy::RequestFraming::new(limits), Vec::new());
                let (mut at, mut ends) = (0, Vec::new());
                for piece in pieces {
                    let mut rest = *piece;
                    while !rest.is_empty() {
                        let taken = if framing.is_in_head() {
                            let end = match framing.scan_head(rest) {
                                Ok(end) => end,
                                Err(error) => return (ends, Some(error.to_string())),
                            };
                            head.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
                            if end.is_some() {
                                if let Err(error) = framing.begin_body(&std::mem::take(&mut head)) {
                                    return (ends, Some(error.to_string()));
                                }
                            }
                            end.unwrap_or(rest.len())
                        } else {
                            match framing.advance_body(rest) {
                                Ok(taken) => taken,
                                Err(error) => return (ends, Some(error.to_string())),
                            }
                        };
                        (at, rest) = (at + taken, &rest[taken..]);
                        if framing.is_in_head() && head.is_empty() {
                            ends.push(at);
                        }
                    }
                }
                (ends, None)
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/heads.rs"));

const WORDS: &[&[u8]] = &[
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"\r",
    b":",
    b" ",
    b"\t",
    b";",
    b"0\r\n\r\n",
    b"5\r\n",
    b"ffffffffffffffff\r\n",
    b"GET / HTTP/1.1\r\n",
    b"POST / HTTP/1.0\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 0\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"transfer-encoding: Chunked, chunked\r\n",
    b"a: b\r\n",
];

fn check<F: Frame>(bytes: &[u8]) -> Result<(), String> {
    let whole = F::frame(&[bytes]);
    for cuts in cuts(bytes) {
        same(&F::frame(&pieces(bytes, &cuts)), &whole, format_args!("cut at {cuts:?}"))?;
    }
    let (ends, error) = slow(bytes);
    same(&whole.0, &ends, "the ends of requests")?;
    same(&whole.1.is_some(), &error, "whether it is refused")?;
    foreign(bytes, &ends)
}

/// The ends of requests in a whole stream, and whether what follows is refused.
fn slow(bytes: &[u8]) -> (Vec<usize>, bool) {
    let (mut ends, mut at) = (Vec::new(), 0);
    loop {
        match request(&bytes[at..]) {
            Ok(Some(length)) => {
                at += length;
                ends.push(at);
            }
            Ok(None) => return (ends, false),
            Err(()) => return (ends, true),
        }
    }
}

/// How long a stream's first request is; nothing if it has not ended.
fn request(bytes: &[u8]) -> Result<Option<usize>, ()> {
    let (mut lines, mut rest) = (Vec::new(), bytes);
    // Empty lines before a request say nothing.
    let head = loop {
        let sound = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        let taken = bytes.len() - rest.len();
        let Some(at) = sound else { return if bytes.len() > BYTES_MAX { Err(()) } else { Ok(None) } };
        let end = match (rest[at], rest.get(at + 1)) {
            (b'\r', Some(b'\n')) => taken + at + 2,
            (b'\r', None) => return if bytes.len() > BYTES_MAX { Err(()) } else { Ok(None) },
            _ => return Err(()),
        };
        if end > BYTES_MAX {
            return Err(());
        }
        let line = &rest[..at];
        rest = &bytes[end..];
        match (line.is_empty(), lines.is_empty()) {
            (true, true) => {}
            (true, false) => break end,
            (false, _) => lines.push(line),
        }
    };
    Ok(match body(&lines)? {
        None => chunked(&bytes[head..])?.map(|body| head + body),
        Some(length) => usize::try_from(length)
            .ok()
            .and_then(|length| head.checked_add(length))
            .filter(|end| *end <= bytes.len()),
    })
}

/// The length of the body behind a head; nothing if it is in chunks.
fn body(lines: &[&[u8]]) -> Result<Option<u64>, ()> {
    let mut encodings = Vec::new();
    let mut lengths = Vec::new();
    if lines.len() > LINES_MAX + 1 {
        return Err(());
    }
    for line in &lines[1..] {
        let colon = line.iter().position(|byte| *byte == b':').ok_or(())?;
        let name = line[..colon].to_ascii_lowercase();
        if name.is_empty() || name.iter().any(u8::is_ascii_whitespace) {
            return Err(());
        }
        let mut value = &line[colon + 1..];
        while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
            value = rest;
        }
        match &name[..] {
            b"transfer-encoding" => encodings.push(value.to_ascii_lowercase()),
            b"content-length" => lengths.push(value),
            _ => {}
        }
    }
    match (&encodings[..], &lengths[..]) {
        ([], []) => Ok(Some(0)),
        ([], [length]) if !length.is_empty() && length.iter().all(u8::is_ascii_digit) => {
            let text = std::str::from_utf8(length).map_err(drop)?;
            text.parse().map(Some).map_err(drop)
        }
        ([encoding], []) if encoding == b"chunked" && !lines[0].trim_ascii_end().ends_with(b"HTTP/1.0") => {
            Ok(None)
        }
        _ => Err(()),
    }
}

/// How long a body in chunks is; nothing if it has not ended.
fn chunked(bytes: &[u8]) -> Result<Option<usize>, ()> {
    let mut at = 0;
    loop {
        let Some(line) = line(&bytes[at..])? else { return digits(&bytes[at..]).map(|_| None) };
        let length = digits(line)?.ok_or(())?;
        at += line.len() + 2;
        if length == 0 {
            break;
        }
        let data = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(end) = at.checked_add(data).filter(|end| *end <= bytes.len()) else { return Ok(None) };
        match &bytes[end..] {
            [] | [b'\r'] => return Ok(None),
            [b'\r', b'\n', ..] => at = end + 2,
            _ => return Err(()),
        }
    }
    // Trailers, until an empty line.
    loop {
        let Some(line) = line(&bytes[at..])? else { return Ok(None) };
        at += line.len() + 2;
        if line.is_empty() {
            return Ok(Some(at));
        }
    }
}

/// The first line, without its end; nothing if it has not ended.
fn line(bytes: &[u8]) -> Result<Option<&[u8]>, ()> {
    let Some(at) = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else { return Ok(None) };
    match (bytes[at], bytes.get(at + 1)) {
        (b'\r', Some(b'\n')) => Ok(Some(&bytes[..at])),
        (b'\r', None) => Ok(None),
        _ => Err(()),
    }
}

/// The length that a chunk's line begins with, if it has one; blanks may follow, and an extension.
fn digits(line: &[u8]) -> Result<Option<u64>, ()> {
    let count = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    if count == 0 && !line.is_empty() {
        return Err(());
    }
    let rest = line[count..].strip_suffix(b"\r").unwrap_or(&line[count..]);
    let first = rest.iter().find(|byte| !matches!(byte, b' ' | b'\t'));
    if count > 16 || first.is_some_and(|byte| *byte != b';') {
        return Err(());
    }
    let text = std::str::from_utf8(&line[..count]).map_err(drop)?;
    (count > 0).then(|| u64::from_str_radix(text, 16)).transpose().map_err(drop)
}

/// Where `httparse` takes a head that ours takes, it must end it in the same place and see the same headers of lengths.
fn foreign(bytes: &[u8], ends: &[usize]) -> Result<(), String> {
    let mut from = 0;
    for end in ends {
        let mut headers = [httparse::EMPTY_HEADER; LINES_MAX];
        let mut request = httparse::Request::new(&mut headers);
        if let Ok(httparse::Status::Complete(head)) = request.parse(&bytes[from..*end]) {
            let of = |name: &str| {
                let lines = request.headers.iter().filter(|line| line.name.eq_ignore_ascii_case(name));
                lines.map(|line| String::from_utf8_lossy(line.value).trim().to_owned()).collect::<Vec<_>>()
            };
            let body = match (&of("transfer-encoding")[..], &of("content-length")[..]) {
                ([], []) => Some(0),
                ([], [length]) => length.parse().ok(),
                ([_], []) => None,
                (encodings, lengths) => return Err(format!("{encodings:?} and {lengths:?} were taken")),
            };
            if let Some(body) = body {
                same(&(from + head + body), end, "against httparse")?;
            }
        }
        from = *end;
    }
    Ok(())
}
