//! Text to token ids as `SentencePiece`'s models of Llama 2 and Mistral have it: from characters up, always the neighbours whose
//! union has the best score. What no token covers becomes its bytes.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use super::controls::ControlTrie;
use super::vocabulary::{TokenKind, Vocabulary};

/// What stands for a space.
pub(super) const SPACE: &str = "\u{2581}";

#[derive(Debug)]
pub(super) struct SpmTokenizer {
    ids: HashMap<String, u32>,
    scores: Vec<f32>,
    bytes: Vec<Option<u32>>,
    unknown: Option<u32>,
    space_prefix: bool,
    /// Tokens with a text of their own, found before everything else.
    defined: ControlTrie,
}

/// A run of characters that is one token so far, and its neighbours.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    from: usize,
    to: usize,
    before: Option<usize>,
    after: Option<usize>,
}

/// Two neighbours that could become one token.
#[derive(Debug, PartialEq)]
struct Union {
    score: f32,
    left: usize,
    right: usize,
    /// How long both are together: of neighbours that have grown since, it is out of date.
    length: usize,
}

impl Eq for Union {}

impl PartialOrd for Union {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Union {
    /// The best score is the greatest; of equal ones the one further left.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.left.cmp(&self.left))
    }
}

impl SpmTokenizer {
    pub(super) fn new(vocabulary: &Vocabulary) -> SpmTokenizer {
        let mut ids = HashMap::new();
        for (id, text) in vocabulary.of_kind(TokenKind::Normal) {
            ids.entry(text.to_owned()).or_insert(id);
        }
        let mut bytes = vec![None; 256];
        for (id, text) in vocabulary.of_kind(TokenKind::Byte) {
            if let Some(place) = byte_of(text).and_then(|byte| bytes.get_mut(usize::from(byte))) {
                *place = Some(id);
            }
        }
        SpmTokenizer {
            ids,
            scores: vocabulary.scores.clone(),
            bytes,
            unknown: vocabulary.unknown,
            space_prefix: vocabulary.add_space_prefix,
            defined: ControlTrie::new(vocabulary.of_kind(TokenKind::UserDefined)),
        }
    }

    /// The tokens of a text that stands at the beginning, or behind a control token.
    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) {
        let mut rest = 0;
        for found in self.defined.find(text) {
            self.encode_run(&text[rest..found.at], ids);
            ids.push(found.id);
            rest = found.at + found.length;
        }
        self.encode_run(&text[rest..], ids);
    }

    fn encode_run(&self, text: &str, ids: &mut Vec<u32>) {
        if text.is_empty() {
            return;
        }
        let prefix = if self.space_prefix { SPACE } else { "" };
        let text = format!("{prefix}{}", text.replace(' ', SPACE));
        let symbols = self.merge(&text);
        let mut next = Some(0);
        while let Some(symbol) = next.and_then(|at| symbols.get(at)) {
            self.emit(&text[symbol.from..symbol.to], ids);
            next = symbol.after;
        }
    }

    /// The characters, joined where tokens join them. The first stays the first.
    fn merge(&self, text: &str) -> Vec<Symbol> {
        let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let end = |n: usize| starts.get(n + 1).copied().unwrap_or(text.len());
        let mut symbols: Vec<Symbol> = (0..starts.len())
            .map(|n| Symbol {
                from: starts[n],
                to: end(n),
                before: n.checked_sub(1),
                after: Some(n + 1).filter(|n| *n < starts.len()),
            })
            .collect();
        let mut unions = BinaryHeap::new();
        for left in 0..symbols.len().saturating_sub(1) {
            unions.extend(self.union(text, &symbols, left, left + 1));
        }
        while let Some(Union { left, right, length, .. }) = unions.pop() {
            let (a, b) = (symbols[left], symbols[right]);
            if a.after != Some(right) || a.from == a.to || b.to - a.from != length {
                continue;
            }
            symbols[left] = Symbol { to: b.to, after: b.after, ..a };
            symbols[right] = Symbol { from: b.to, ..b };
            if let Some(after) = b.after {
                symbols[after].before = Some(left);
                unions.extend(self.union(text, &symbols, left, after));
            }
            if let Some(before) = a.before {
                unions.extend(self.union(text, &symbols, before, left));
            }
        }
        symbols
    }

    fn union(&self, text: &str, symbols: &[Symbol], left: usize, right: usize) -> Option<Union> {
        let (from, to) = (symbols[left].from, symbols[right].to);
        let id = *self.ids.get(&text[from..to])?;
        let score = self.scores.get(id as usize).copied().unwrap_or(0.0);
        Some(Union { score, left, right, length: to - from })
    }

    fn emit(&self, text: &str, ids: &mut Vec<u32>) {
        match self.ids.get(text) {
            Some(id) => ids.push(*id),
            None => {
                ids.extend(text.bytes().filter_map(|byte| self.bytes[usize::from(byte)].or(self.unknown)));
            }
        }
    }
}

/// The byte that a token such as `<0x0A>` stands for.
pub(super) fn byte_of(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    u8::from_str_radix(digits, 16).ok()
}
