//! What the commented file that ships says of each key: the comment above it, and the value that stands there.
//!
//! A line after another without a comment between them is about the same. A key that has no line is described by the comment that
//! writes it, like `(token_file = "admin.token")`. Behind an example `# default` says that its value holds without it,
//! `# default: …` what holds in words, and `# required` that the key must be there.

use std::collections::{BTreeMap, BTreeSet};

use super::commented_line::{CommentedLine, StatedDefault, lines};

/// What the file says of a key or of a section.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Comment {
    /// What it is for.
    pub(super) help: String,
    /// What holds without it.
    pub(super) default: Option<toml::Value>,
    /// The same in words, where it is no one value.
    pub(super) default_words: Option<String>,
    /// A value that it might have.
    pub(super) example: Option<toml::Value>,
    /// Its place in the file.
    pub(super) place: Option<usize>,
}

impl Comment {
    /// Takes a default that is written in a comment: a value as TOML has it, else words. The first one counts.
    fn state_default(&mut self, stated: &str) {
        if self.default.is_some() || self.default_words.is_some() {
            return;
        }
        let value =
            format!("it = {stated}").parse::<toml::Table>().ok().and_then(|mut table| table.remove("it"));
        match value {
            Some(value) => self.default = Some(value),
            None => self.default_words = Some(stated.to_owned()),
        }
    }
}

/// What a file says, by the paths of its keys and sections.
#[derive(Debug, Default)]
pub(super) struct Comments {
    found: BTreeMap<String, Comment>,
    /// Every comment, with the path before the keys of the section that it stands in.
    all: Vec<(String, String)>,
}

impl Comments {
    /// Reads a whole file. Which keys there are, others know.
    pub(super) fn read(text: &str, is_known: &dyn Fn(&str) -> bool) -> Comments {
        let mut reader = CommentReader::new(is_known);
        lines(text).into_iter().for_each(|line| reader.take(line));
        reader.comments
    }

    /// What is said of a key or a section.
    pub(super) fn of(&self, path: &str) -> Comment {
        let mut comment = self.found.get(path).cloned().unwrap_or_default();
        if comment.help.is_empty() {
            comment.help = self.mention(path).unwrap_or_default().to_owned();
        }
        comment
    }

    /// A comment of its section, or of the one above that, which writes the key.
    fn mention(&self, path: &str) -> Option<&str> {
        let (section, name) = split(path);
        let is_written = |text: &str| {
            let words = text.split_whitespace();
            let pairs = words.clone().zip(words.skip(1));
            let bare = |word: &str| word.trim_start_matches(['(', '`', '{']) == name;
            pairs.into_iter().any(|(word, next)| bare(word) && next.starts_with('='))
        };
        let within = |section: &str| {
            let mut own = self.all.iter().filter(|(of, _)| of == section);
            own.find(|(_, text)| is_written(text)).map(|(_, text)| text.as_str())
        };
        let above = split(section.trim_end_matches('.').trim_end_matches("[]")).0;
        within(section).or_else(|| within(above).filter(|_| !above.is_empty()))
    }
}

/// The path before a key, and its name.
fn split(path: &str) -> (&str, &str) {
    path.rfind('.').map_or(("", path), |dot| path.split_at(dot + 1))
}

struct CommentReader<'k> {
    is_known: &'k dyn Fn(&str) -> bool,
    comments: Comments,
    /// The sections that there may be several of.
    lists: BTreeSet<String>,
    /// The path before the keys of this section.
    section: String,
    /// The comment just above, and the one before an empty line.
    above: Vec<String>,
    before: Vec<String>,
    /// The key before, and what it was said to be for.
    last: (String, String),
    /// What the row before was about.
    rows: Vec<String>,
}

impl CommentReader<'_> {
    fn new(is_known: &dyn Fn(&str) -> bool) -> CommentReader<'_> {
        CommentReader {
            is_known,
            comments: Comments::default(),
            lists: BTreeSet::new(),
            section: String::new(),
            above: Vec::new(),
            before: Vec::new(),
            last: (String::new(), String::new()),
            rows: Vec::new(),
        }
    }

    fn take(&mut self, line: CommentedLine) {
        if !matches!(line, CommentedLine::Row(_)) {
            self.rows.clear();
        }
        match line {
            CommentedLine::Blank => {
                self.before = std::mem::take(&mut self.above);
                self.last.1.clear();
            }
            CommentedLine::Rule => self.above.clear(),
            CommentedLine::Comment(text) => self.above.push(text),
            CommentedLine::Row(row) => self.row(&row),
            CommentedLine::Header(name, is_list) => self.header(&name, is_list),
            CommentedLine::Value { name, value, is_example, is_aside, default } => {
                let [path, any] = [&*name, "*"].map(|name| format!("{}{name}", self.section));
                if (self.is_known)(&path) {
                    self.value(path, value, is_example, default);
                } else if (self.is_known)(&any) {
                    self.value(any, value, true, None);
                } else if is_aside {
                    self.above.push(format!("{name} = {value}"));
                }
            }
        }
    }

    /// A row is about what stands in the braces of the key before: its name, or names, and what they are for.
    fn row(&mut self, row: &str) {
        let below = |name: &str| {
            let paths = [".", "[]."].map(|joint| format!("{}{joint}{name}", self.last.0));
            paths.into_iter().find(|path| (self.is_known)(path))
        };
        let split = row.split_once("  ").filter(|(names, _)| !names.is_empty());
        if let Some((names, _)) = split {
            self.rows = names.split(", ").filter_map(below).collect();
        }
        let help = split.map_or(row, |(_, help)| help).trim();
        let (help, default) =
            help.split_once("; default ").map_or((help, None), |(help, default)| (help, Some(default)));
        for path in &self.rows {
            let comment = self.comments.found.entry(path.clone()).or_default();
            comment.help = format!("{} {help}", comment.help).trim().to_owned();
            default.into_iter().for_each(|stated| comment.state_default(stated));
        }
    }

    fn header(&mut self, name: &str, is_list: bool) {
        let (mut section, mut path) = (String::new(), String::new());
        let parts: Vec<&str> = name.split('.').collect();
        for (place, part) in parts.iter().enumerate() {
            let own = format!("{section}{part}");
            path = if (self.is_known)(&own) { own } else { format!("{section}*") };
            if is_list && place + 1 == parts.len() {
                self.lists.insert(path.clone());
            }
            section = format!("{path}{}", if self.lists.contains(&path) { "[]." } else { "." });
        }
        let (above, before) = (std::mem::take(&mut self.above), std::mem::take(&mut self.before));
        // What stands at the top of the file is about all of it.
        let before = if self.section.is_empty() { Vec::new() } else { before };
        self.section = section;
        let help = sentences(if above.is_empty() { &before } else { &above });
        self.note(path, help, |_| {});
        self.last = (String::new(), String::new());
    }

    fn value(&mut self, path: String, value: toml::Value, is_example: bool, default: Option<StatedDefault>) {
        let help = if self.above.is_empty() { self.last.1.clone() } else { sentences(&self.above) };
        self.above.clear();
        self.last = (path.clone(), help.clone());
        self.note(path, help, |comment| {
            let is_default = !is_example || default == Some(StatedDefault::Shown);
            let place = if is_default { &mut comment.default } else { &mut comment.example };
            *place = place.take().or(Some(value));
            if let Some(StatedDefault::Words(words)) = default {
                comment.state_default(&words);
            }
        });
    }

    fn note(&mut self, path: String, help: String, value: impl FnOnce(&mut Comment)) {
        self.comments.all.push((self.section.clone(), help.clone()));
        let next = self.comments.found.len();
        let comment = self.comments.found.entry(path).or_default();
        comment.place = comment.place.or(Some(next));
        if comment.help.is_empty() {
            comment.help = help;
        }
        value(comment);
    }
}

/// The first paragraph of a comment.
fn sentences(lines: &[String]) -> String {
    let first: Vec<&str> = lines.iter().map(String::as_str).take_while(|line| !line.is_empty()).collect();
    let text = first.join(" ");
    text.strip_suffix(':').map_or(text.clone(), |text| format!("{text}."))
}
