//! Draws a snapshot.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table};

use super::columns;
use super::controls::{Controls, Pane};
use super::rates::CounterRates;
use super::snapshot::{Share, Snapshot};

/// From how many columns on the two lower tables stand side by side.
const WIDE: u16 = 110;
/// How many cells a bar has, of a thought and of a limit.
const THOUGHT_BAR: usize = 12;
const LIMIT_BAR: usize = 8;

/// All that is drawn.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) snapshot: Option<Snapshot>,
    pub(super) rates: Option<CounterRates>,
    /// What went wrong with the last question.
    pub(super) trouble: Option<String>,
    pub(super) controls: Controls,
}

/// What is the same of a table whatever its rows are.
struct PaneTable<'t> {
    pane: Pane,
    title: &'t str,
    head: &'t [&'static str],
    widths: &'t [Constraint],
}

impl View {
    /// How many rows each table has.
    pub(super) fn rows(&self) -> [usize; 3] {
        let snapshot = self.snapshot.as_ref();
        snapshot.map_or([0; 3], |shown| [shown.requests.len(), shown.targets.len(), shown.limits.len()])
    }

    /// Draws it, however large the terminal is.
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let [top, middle, bottom, foot] = Layout::vertical([
            Constraint::Length(3),
            Constraint::Fill(3),
            Constraint::Fill(2),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(self.foot(), foot);
        let Some(snapshot) = &self.snapshot else {
            return frame.render_widget(Paragraph::new("asking the server …"), top);
        };
        frame.render_widget(self.summary(snapshot), top);
        self.requests(frame, middle, snapshot);
        let halves = [Constraint::Fill(1), Constraint::Fill(1)];
        let lower = if bottom.width >= WIDE { Layout::horizontal(halves) } else { Layout::vertical(halves) };
        let [targets, limits] = lower.areas(bottom);
        self.targets(frame, targets, snapshot);
        self.limits(frame, limits, snapshot);
    }

    fn summary(&self, snapshot: &Snapshot) -> Paragraph<'static> {
        let mut lines: Vec<Line<'static>> =
            columns::summary(snapshot, self.rates).into_iter().map(Line::from).collect();
        let alarm = if snapshot.not_ready.is_some() { Color::Red } else { Color::Green };
        if let Some(first) = lines.first_mut() {
            *first = first.clone().style(Style::new().fg(alarm).add_modifier(Modifier::BOLD));
        }
        Paragraph::new(lines)
    }

    fn foot(&self) -> Paragraph<'static> {
        match &self.trouble {
            Some(trouble) => Paragraph::new(trouble.replace('\n', " ")).style(Style::new().fg(Color::Red)),
            None => Paragraph::new("q quit   ←→ table   ↑↓ scroll")
                .style(Style::new().add_modifier(Modifier::DIM)),
        }
    }

    fn requests(&self, frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot) {
        let rows = snapshot.requests.iter().map(|request| {
            let [account, route, model, time, thought, answer] = columns::request(request);
            let cells = [account, route, model, time].map(Cell::from);
            let thought = filling(request.thinking, THOUGHT_BAR, &thought);
            Row::new(cells.into_iter().chain([thought, Cell::from(answer)]))
        });
        let widths = [
            Constraint::Fill(2),
            Constraint::Fill(2),
            Constraint::Fill(3),
            Constraint::Length(6),
            Constraint::Length(26),
            Constraint::Length(12),
        ];
        let title = format!("requests ({})", snapshot.requests_count);
        let table =
            PaneTable { pane: Pane::Requests, title: &title, head: &columns::REQUESTS, widths: &widths };
        self.table(frame, area, &table, rows);
    }

    fn targets(&self, frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot) {
        let rows = snapshot.targets.iter().map(|target| {
            let color = if target.is_available { Color::Reset } else { Color::Red };
            Row::new(columns::target(target)).style(Style::new().fg(color))
        });
        let widths = [
            Constraint::Fill(2),
            Constraint::Fill(1),
            Constraint::Fill(3),
            Constraint::Length(9),
            Constraint::Length(5),
            Constraint::Length(8),
        ];
        let table =
            PaneTable { pane: Pane::Targets, title: "backends", head: &columns::TARGETS, widths: &widths };
        self.table(frame, area, &table, rows);
    }

    fn limits(&self, frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot) {
        let rows = snapshot.limits.iter().map(|limit| {
            let [account, about, spent, whole, end] = columns::limit(limit);
            let share = Share { used: limit.spent.used + limit.reserved, whole: limit.spent.whole };
            Row::new([
                Cell::from(account),
                Cell::from(about),
                filling(share, LIMIT_BAR, &spent),
                Cell::from(whole),
                Cell::from(end),
            ])
        });
        let widths = [
            Constraint::Fill(2),
            Constraint::Fill(3),
            Constraint::Length(17),
            Constraint::Length(8),
            Constraint::Length(8),
        ];
        let title = "money and other limits";
        let table = PaneTable { pane: Pane::Limits, title, head: &columns::LIMITS, widths: &widths };
        self.table(frame, area, &table, rows);
    }

    fn table<'r>(
        &self,
        frame: &mut Frame<'_>,
        area: Rect,
        table: &PaneTable<'_>,
        rows: impl Iterator<Item = Row<'r>>,
    ) {
        let PaneTable { pane, title, head, widths } = *table;
        let looked_at = if self.controls.pane == pane { Color::Cyan } else { Color::DarkGray };
        let block = Block::bordered().title(title.to_owned()).border_style(Style::new().fg(looked_at));
        let head = Row::new(head.iter().copied()).style(Style::new().add_modifier(Modifier::BOLD));
        let shown = rows.skip(self.controls.first[pane.place()]);
        frame.render_widget(Table::new(shown, widths.iter().copied()).header(head).block(block), area);
    }
}

/// A bar, and the figures behind it. What is nearly full is marked.
fn filling(share: Share, cells: usize, figures: &str) -> Cell<'static> {
    let color = match share.ratio() {
        full if full >= 0.95 => Color::Red,
        much if much >= 0.75 => Color::Yellow,
        _ => Color::Green,
    };
    let bar = Span::styled(columns::bar(share, cells), Style::new().fg(color));
    Cell::from(Line::from(vec![bar, Span::raw(format!(" {figures}"))]))
}
