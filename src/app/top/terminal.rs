//! The terminal: takes keys, draws, and is left as it was found.

use std::sync::mpsc::TryRecvError;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event;

use super::controls::Follows;
use super::rates::CounterRates;
use super::screen::View;
use super::snapshot::Snapshot;
use super::source::{SnapshotSource, TopError};

/// How soon a snapshot is drawn once it has come.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Draws what the source tells until somebody quits. Where the first answer is a refusal, that is the end.
pub(super) fn watch(source: SnapshotSource, every: Duration) -> Result<(), TopError> {
    let answers = source.start(every)?;
    let first = answers.recv().unwrap_or_else(|_| Err(TopError::Thread(ended())))?;
    let mut view = View::default();
    take(&mut view, Ok(first));
    let mut terminal = ratatui::try_init()?;
    let shown = show(&mut terminal, &mut view, || answers.try_recv());
    ratatui::restore();
    Ok(shown?)
}

fn ended() -> std::io::Error {
    std::io::Error::other("the thread that asks has ended")
}

fn show(
    terminal: &mut DefaultTerminal,
    view: &mut View,
    next: impl Fn() -> Result<Result<Snapshot, TopError>, TryRecvError>,
) -> std::io::Result<()> {
    terminal.draw(|frame| view.draw(frame))?;
    loop {
        let mut is_due = false;
        if event::poll(LOOK_EVERY)? {
            match view.controls.take(&event::read()?, view.rows()) {
                Follows::Quit => return Ok(()),
                Follows::Draw => is_due = true,
                Follows::Nothing => {}
            }
        }
        match next() {
            Ok(answer) => {
                take(view, answer);
                is_due = true;
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Err(ended()),
        }
        if is_due {
            terminal.draw(|frame| view.draw(frame))?;
        }
    }
}

/// A snapshot in place of the one before. Where there is none, that one stays, and it is said why.
fn take(view: &mut View, answer: Result<Snapshot, TopError>) {
    match answer {
        Ok(snapshot) => {
            let before = view.snapshot.as_ref().map(|before| before.counters);
            // Two snapshots of the same moment tell nothing of a rate.
            let rates = before.and_then(|before| CounterRates::between(&before, &snapshot.counters));
            view.rates = rates;
            view.trouble = None;
            view.snapshot = Some(snapshot);
        }
        Err(error) => view.trouble = Some(error.to_string()),
    }
}
