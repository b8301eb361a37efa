//! What the keys of a configuration may be, noted while they are asked for: the reader itself is the only list of them.
//!
//! A document that notes shapes has every key that is asked after, so that what hangs on a key is asked for too.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// What may stand to the right of an equals sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::config) enum ValueShape {
    /// A text with something in it.
    Text,
    /// A text that may be empty.
    AnyText,
    /// True or false.
    Flag,
    /// A number, whole or not.
    Number,
    /// A whole number from 0 on.
    Integer,
    /// A count of bytes.
    Size,
    /// A time with its unit.
    Time,
    /// Dollars.
    Money,
    /// A moment, with its offset.
    Moment,
    /// A network, or an address alone.
    Network,
    /// An address and a port.
    Address,
    /// A path.
    Path,
    /// Several of a kind.
    List(Box<ValueShape>),
    /// One kind or the other.
    Either(Box<ValueShape>, Box<ValueShape>),
}

/// What a key may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::config) enum KeyShape {
    /// It was only asked whether it is there.
    Unread,
    /// Any value of a kind.
    Value(ValueShape),
    /// A value in a range, whose ends are as they are written.
    Ranged(ValueShape, String, String),
    /// One of some words.
    Word(Vec<String>),
    /// Some of some words.
    Words(Vec<String>),
    /// A section.
    Section,
    /// Any number of sections.
    Sections,
}

/// What was noted of a key.
#[derive(Debug)]
struct NotedKey {
    /// What it may be.
    shape: KeyShape,
    /// How often it was said that it must be there.
    requirements: usize,
}

/// Every key that was asked for, by its path: `server.listen`, `backend[].model[].name`, and `tools.*.counts` where the
/// operator chooses the name.
#[derive(Debug, Default)]
pub(in crate::config) struct ShapeRecorder {
    keys: RefCell<BTreeMap<String, NotedKey>>,
    /// How often each section was opened.
    openings: RefCell<BTreeMap<String, usize>>,
}

impl ShapeRecorder {
    /// Notes what a key of a section may be; what says more of it counts.
    pub(in crate::config) fn note(&self, section: &str, key: &str, shape: KeyShape) {
        let mut keys = self.keys.borrow_mut();
        let noted = keys.entry(format!("{section}{key}"));
        noted.or_insert(NotedKey { shape: KeyShape::Unread, requirements: 0 }).shape.join(shape);
    }

    /// Notes that a key must be there.
    pub(in crate::config) fn require(&self, section: &str, key: &str) {
        self.note(section, key, KeyShape::Unread);
        if let Some(noted) = self.keys.borrow_mut().get_mut(&format!("{section}{key}")) {
            noted.requirements += 1;
        }
    }

    /// Notes that a section is read.
    pub(in crate::config) fn open(&self, section: &str) {
        *self.openings.borrow_mut().entry(section.to_owned()).or_default() += 1;
    }

    /// All that was noted: what each key may be, and whether it must be there each time that its section is.
    pub(in crate::config) fn into_keys(self) -> BTreeMap<String, (KeyShape, bool)> {
        let openings = self.openings.into_inner();
        let is_required = |path: &str, noted: &NotedKey| {
            let section = path.rfind('.').map_or("", |dot| &path[..=dot]);
            noted.requirements > 0 && openings.get(section).is_some_and(|times| *times <= noted.requirements)
        };
        let keys = self.keys.into_inner().into_iter().map(|(path, noted)| {
            let is_required = is_required(&path, &noted);
            (path, (noted.shape, is_required))
        });
        keys.collect()
    }
}

impl KeyShape {
    /// Takes in what was noted elsewhere of the same key: words add up, and else what says more holds.
    pub(in crate::config) fn join(&mut self, other: KeyShape) {
        match (&mut *self, other) {
            (KeyShape::Word(known), KeyShape::Word(more))
            | (KeyShape::Words(known), KeyShape::Words(more)) => {
                let new: Vec<String> = more.into_iter().filter(|word| !known.contains(word)).collect();
                known.extend(new);
            }
            (known, other) if other.rank() > known.rank() => *known = other,
            _ => {}
        }
    }

    fn rank(&self) -> u8 {
        match self {
            KeyShape::Unread => 0,
            KeyShape::Value(_) => 1,
            KeyShape::Ranged(..)
            | KeyShape::Word(_)
            | KeyShape::Words(_)
            | KeyShape::Section
            | KeyShape::Sections => 2,
        }
    }
}
