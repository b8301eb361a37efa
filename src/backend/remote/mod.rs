//! Models behind somebody else's HTTP API.
//!
//! Each API is two pure translations (our call to its JSON, its events to our pieces) and a thin piece of I/O.

mod client;
#[cfg(test)]
mod golden;
pub mod llamacpp;
pub mod openai;
mod refusal;
mod secret;
mod sse;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod upstream;
mod wire;

use std::collections::VecDeque;

use futures_util::stream;

use super::pace::Lap;
use super::{Failure, Generation, Piece};

pub use client::{Settings, SettingsError};
pub use secret::Secret;
pub use sse::Limits;

/// Turns an upstream's events into pieces. It hands out an [`Piece::End`] once, and last.
trait Reader: Send + 'static {
    /// Reads the data of one event.
    fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure>;

    /// The upstream has ended its stream; a failure where it was not complete.
    fn close(&mut self, pieces: &mut VecDeque<Piece>) -> Result<(), Failure>;
}

struct Flow<R> {
    events: client::Events,
    reader: R,
    lap: Lap,
    pieces: VecDeque<Piece>,
    pace: super::pace::Pace,
    over: bool,
}

/// The pieces of a stream that has begun. `first` come before whatever the upstream says.
fn generation<R: Reader>(
    events: client::Events,
    reader: R,
    lap: Lap,
    pace: super::pace::Pace,
    first: VecDeque<Piece>,
) -> Generation {
    let flow = Flow { events, reader, lap, pieces: first, pace, over: false };
    Box::pin(stream::unfold(flow, |mut flow| async move {
        let piece = flow.next().await?;
        if let Err(failure) = &piece {
            flow.over = true;
            flow.pace.failed(failure);
        }
        Some((piece, flow))
    }))
}

impl<R: Reader> Flow<R> {
    async fn next(&mut self) -> Option<Result<Piece, Failure>> {
        while !self.over && self.pieces.is_empty() {
            if let Err(failure) = self.advance().await {
                return Some(Err(failure));
            }
        }
        let piece = self.pieces.pop_front()?;
        self.lap.note(&piece);
        if matches!(piece, Piece::End(_)) {
            self.over = true;
            self.pieces.clear();
            self.events.release().await;
        }
        Some(Ok(piece))
    }

    async fn advance(&mut self) -> Result<(), Failure> {
        let read = match self.events.next().await? {
            Some(event) => self.reader.read(&event, &mut self.pieces),
            None => self.reader.close(&mut self.pieces),
        };
        read.map_err(|failure| self.events.without_secret(failure))
    }
}
