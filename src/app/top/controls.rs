//! Which table is looked at, and how far down: what the keys change.

use ratatui::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};

/// How far a page is.
const PAGE: usize = 10;

/// The tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Pane {
    #[default]
    Requests,
    Targets,
    Limits,
}

/// What is looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Controls {
    pub(super) pane: Pane,
    /// The first row of each table.
    pub(super) first: [usize; 3],
}

/// What follows a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follows {
    /// It is drawn anew.
    Draw,
    /// Nothing.
    Nothing,
    /// The end.
    Quit,
}

impl Controls {
    /// Takes in a key, or another size of the terminal. The tables have so many rows.
    pub(super) fn take(&mut self, event: &Event, rows: [usize; 3]) -> Follows {
        let key = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => key,
            Event::Resize(..) => return Follows::Draw,
            _ => return Follows::Nothing,
        };
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => return Follows::Quit,
            KeyCode::Char('q') | KeyCode::Esc => return Follows::Quit,
            KeyCode::Tab | KeyCode::Right => self.pane = self.pane.next(),
            KeyCode::BackTab | KeyCode::Left => self.pane = self.pane.next().next(),
            KeyCode::Down | KeyCode::Char('j') => self.scroll(1, rows),
            KeyCode::Up | KeyCode::Char('k') => self.scroll_back(1),
            KeyCode::PageDown => self.scroll(PAGE, rows),
            KeyCode::PageUp => self.scroll_back(PAGE),
            KeyCode::Home => self.scroll_back(usize::MAX),
            KeyCode::End => self.scroll(usize::MAX, rows),
            _ => return Follows::Nothing,
        }
        Follows::Draw
    }

    fn scroll(&mut self, by: usize, rows: [usize; 3]) {
        let place = self.pane.place();
        self.first[place] = self.first[place].saturating_add(by).min(rows[place].saturating_sub(1));
    }

    fn scroll_back(&mut self, by: usize) {
        let first = &mut self.first[self.pane.place()];
        *first = first.saturating_sub(by);
    }
}

impl Pane {
    /// Its place among the tables.
    pub(super) fn place(self) -> usize {
        match self {
            Pane::Requests => 0,
            Pane::Targets => 1,
            Pane::Limits => 2,
        }
    }

    fn next(self) -> Pane {
        match self {
            Pane::Requests => Pane::Targets,
            Pane::Targets => Pane::Limits,
            Pane::Limits => Pane::Requests,
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::KeyEvent;

    use super::*;

    fn press(controls: &mut Controls, code: KeyCode) -> Follows {
        controls.take(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)), [3, 20, 0])
    }

    #[test]
    fn arrows_go_through_tables_and_rows_and_q_ends() {
        let mut controls = Controls::default();
        (0..5).for_each(|_| assert_eq!(press(&mut controls, KeyCode::Down), Follows::Draw));
        assert_eq!(controls.first, [2, 0, 0], "the last row stays in sight");
        press(&mut controls, KeyCode::Right);
        press(&mut controls, KeyCode::PageDown);
        press(&mut controls, KeyCode::Up);
        assert_eq!((controls.pane, controls.first), (Pane::Targets, [2, 9, 0]));
        press(&mut controls, KeyCode::Left);
        press(&mut controls, KeyCode::Home);
        assert_eq!((controls.pane, controls.first), (Pane::Requests, [0, 9, 0]));
        assert_eq!(press(&mut controls, KeyCode::Char('x')), Follows::Nothing);
        assert_eq!(press(&mut controls, KeyCode::Char('q')), Follows::Quit);
        let interrupt = Event::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert_eq!(controls.take(&interrupt, [0; 3]), Follows::Quit);
        assert_eq!(controls.take(&Event::Resize(80, 24), [0; 3]), Follows::Draw);
    }
}
