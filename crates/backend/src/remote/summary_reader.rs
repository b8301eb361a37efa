//! Handles thoughts that are only shown as summaries: the summary's text does not count as thinking tokens.

use std::collections::VecDeque;

use crate::{Failure, Piece};

use super::EventReader;

/// A reader whose thoughts are summaries.
#[derive(Debug)]
pub(super) struct SummaryReader<R>(pub(super) R);

impl<R: EventReader> EventReader for SummaryReader<R> {
    fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        let read = self.0.read(data, pieces);
        pieces.iter_mut().for_each(summarize);
        read
    }

    fn close(&mut self, pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        let closed = self.0.close(pieces);
        pieces.iter_mut().for_each(summarize);
        closed
    }

    fn is_complete(&self) -> bool {
        self.0.is_complete()
    }
}

fn summarize(piece: &mut Piece) {
    if let Piece::Thought { text, .. } = piece {
        *piece = Piece::Summary(std::mem::take(text));
    }
}
