//! HTTP/2 to callers: a connection with many requests at once, each of them within the bounds that a connection of HTTP/1.1 has.
//!
//! Hyper and h2 read the frames. What they leave open is here: how many bytes wait for a caller who takes none, when such a caller
//! is given up, how many requests may be taken back, and when an idle connection ends.

mod connection;
mod head;
mod reset_budget;
mod stream;
mod stream_spawner;

pub(super) use connection::{Http2Connection, PREFACE, RESETS, serve};
pub(super) use head::{check_head, with_host};
pub(super) use stream::watched;
