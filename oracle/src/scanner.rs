//! The scanner of server-sent events, against the crate `sse-stream` and against itself cut elsewhere.
//!
//! Where they are to differ: what stands at the end without its blank line, that crate drops in silence and ours hands
//! over, to be taken for a break (or for `[DONE]`); bytes that are no UTF-8 are an error there, while ours leaves them to
//! the code that reads the data; and that crate reports events without data, which ours passes over. It has no limits.

use std::collections::VecDeque;
use std::convert::Infallible;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use sse_stream::SseByteStream;

use crate::{Subject, cuts, pieces, same, settings};

/// What a scanner makes of some bytes: the events, and what stood at the end, or that it was too much.
type Made = (Vec<Vec<u8>>, Result<Option<Vec<u8>>, String>);

/// A scanner's way from pieces to events, with a limit of a line and of an event.
trait Scan {
    fn scan(pieces: &[&[u8]], line: usize, event: usize) -> Made;
}

macro_rules! subjects {
    ($($planted:ident),* $(,)?) => {
        subjects! { @scan sound }
        $(subjects! { @scan $planted })*

        /// The scanner's checks.
        pub const SUBJECT: Subject = Subject {
            name: "scanner",
            sound: check::<sound::SseScanner>,
            planted: &[$((stringify!($planted), check::<$planted::SseScanner>)),*],
            words: WORDS,
        };
    };
    (@scan $copy:ident) => {
        impl Scan for $copy::SseScanner {
            fn scan(pieces: &[&[u8]], line: usize, event: usize) -> Made {
                let mut scanner = $copy::SseScanner::new($copy::SseLimits { line, event });
                let mut events = VecDeque::new();
                for piece in pieces {
                    if let Err(error) = scanner.feed(piece, &mut events) {
                        return (events.into(), Err(error.to_string()));
                    }
                }
                (events.into(), scanner.finish().map_err(|error| error.to_string()))
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/scanner.rs"));

const WORDS: &[&[u8]] = &[
    b"data",
    b"data: ",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\r\n\r\n",
    b":",
    b" ",
    b"\xEF\xBB\xBF",
    b"event: ",
    b"[DONE]",
];

fn check<S: Scan>(bytes: &[u8]) -> Result<(), String> {
    for setting in settings(bytes, 2) {
        let (line, event) = [(1 << 20, 4 << 20), (48, 64)][setting];
        let whole = S::scan(&[bytes], line, event);
        for cuts in cuts(bytes) {
            same(&S::scan(&pieces(bytes, &cuts), line, event), &whole, format_args!("cut at {cuts:?}"))?;
        }
    }
    // Foreign: all events that are complete, and nothing of the rest.
    match (std::str::from_utf8(bytes), foreign(bytes)) {
        (Ok(_), Some(events)) => same(&S::scan(&[bytes], 1 << 20, 4 << 20).0, &events, "against sse-stream"),
        _ => Ok(()),
    }
}

/// What `sse-stream` makes of it.
fn foreign(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let chunk = Ok::<_, Infallible>(Bytes::copy_from_slice(bytes));
    let events = SseByteStream::new(stream::iter([chunk])).collect::<Vec<_>>().now_or_never()?;
    let events: Result<Vec<_>, _> = events.into_iter().collect();
    Some(events.ok()?.into_iter().filter_map(|event| event.data.map(String::into_bytes)).collect())
}
