//! The lines of the commented file that ships.

/// A line of the file, or several where a value goes on.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CommentedLine {
    /// Nothing.
    Blank,
    /// A rule between two parts.
    Rule,
    /// A line of a comment.
    Comment(String),
    /// A row of a table in a comment.
    Row(String),
    /// The header of a section, and whether there may be several of it.
    Header(String, bool),
    /// A key with its value.
    Value {
        /// Its name.
        name: String,
        /// What stands there.
        value: toml::Value,
        /// Whether it is an example, which does not hold.
        is_example: bool,
        /// Whether it stands in a comment, as a second way to say the line before.
        is_aside: bool,
        /// What the comment behind it says of its default.
        default: Option<StatedDefault>,
    },
}

/// The default of a key, as a comment behind its example states it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StatedDefault {
    /// `# default`: the value that stands there.
    Shown,
    /// `# default: half of connections_max`, or `# required`: in words.
    Words(String),
}

/// The lines of a text.
pub(super) fn lines(text: &str) -> Vec<CommentedLine> {
    let mut lines = Vec::new();
    let mut rest = text.lines().peekable();
    while let Some(line) = rest.next() {
        let (statement, is_example) = match line.strip_prefix('#') {
            None if line.trim().is_empty() => {
                lines.push(CommentedLine::Blank);
                continue;
            }
            None => (line, false),
            Some(text) if text.starts_with(|first: char| first.is_ascii_lowercase() || first == '[') => {
                (text, true)
            }
            Some(text) => {
                lines.push(comment(text));
                continue;
            }
        };
        if statement.starts_with('[') {
            let name = statement.trim().trim_matches(['[', ']']).to_owned();
            lines.push(CommentedLine::Header(name, statement.starts_with("[[")));
            continue;
        }
        let mut whole = statement.to_owned();
        while whole.parse::<toml::Table>().is_err() {
            let Some(next) = rest.next() else { break };
            whole += "\n";
            whole += next.strip_prefix('#').unwrap_or(next);
        }
        lines.extend(value(&whole, is_example, false));
    }
    lines
}

fn comment(text: &str) -> CommentedLine {
    let text = text.strip_prefix(' ').unwrap_or(text);
    if text.starts_with("---") {
        return CommentedLine::Rule;
    }
    if let Some(row) = text.strip_prefix("    ") {
        return CommentedLine::Row(row.to_owned());
    }
    value(text, true, true).unwrap_or_else(|| CommentedLine::Comment(text.to_owned()))
}

fn value(text: &str, is_example: bool, is_aside: bool) -> Option<CommentedLine> {
    let table: toml::Table = text.parse().ok()?;
    let (name, value) = table.into_iter().next()?;
    Some(CommentedLine::Value { name, value, is_example, is_aside, default: stated_default(text) })
}

fn stated_default(text: &str) -> Option<StatedDefault> {
    let (_, comment) = text.rsplit_once(" # ")?;
    match comment.trim() {
        "default" => Some(StatedDefault::Shown),
        "required" => Some(StatedDefault::Words("required".to_owned())),
        other => {
            let words = other.strip_prefix("default: ")?;
            Some(StatedDefault::Words(words.to_owned()))
        }
    }
}
