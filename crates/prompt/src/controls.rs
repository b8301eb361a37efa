//! Finds control tokens in text, in one pass however many of them there are.

use std::collections::BTreeMap;

/// The control tokens of a vocabulary, byte by byte.
#[derive(Debug, Default)]
pub(super) struct ControlTrie(TrieNode);

#[derive(Debug, Default)]
struct TrieNode {
    next: BTreeMap<u8, TrieNode>,
    /// The token that ends here.
    id: Option<u32>,
}

/// A control token in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ControlMatch {
    /// Where it begins.
    pub(super) at: usize,
    /// How many bytes it has.
    pub(super) length: usize,
    /// Which one it is.
    pub(super) id: u32,
}

impl ControlTrie {
    /// A trie of these tokens. A token without text is left out.
    pub(super) fn new<'a>(tokens: impl Iterator<Item = (u32, &'a str)>) -> ControlTrie {
        let mut root = TrieNode::default();
        for (id, text) in tokens.filter(|(_, text)| !text.is_empty()) {
            let last = text.bytes().fold(&mut root, |node, byte| node.next.entry(byte).or_default());
            last.id.get_or_insert(id);
        }
        ControlTrie(root)
    }

    /// Finds the control tokens of a text. Matches do not overlap. Where two begin at the same byte, the longer one counts.
    pub(super) fn find<'a>(&'a self, text: &'a str) -> impl Iterator<Item = ControlMatch> + 'a {
        let mut from = 0;
        std::iter::from_fn(move || {
            let found = (from..text.len()).find_map(|at| self.match_at(text, at))?;
            from = found.at + found.length;
            Some(found)
        })
    }

    fn match_at(&self, text: &str, at: usize) -> Option<ControlMatch> {
        let mut node = &self.0;
        let mut longest = None;
        for (byte, length) in text.as_bytes()[at..].iter().zip(1..) {
            let Some(next) = node.next.get(byte) else { break };
            node = next;
            longest = node.id.map(|id| ControlMatch { at, length, id }).or(longest);
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(usize, u32)]) {
        let controls =
            ControlTrie::new([(1, "<|a|>"), (2, "<|a|>b"), (3, "<"), (4, ""), (5, "→")].into_iter());
        let found: Vec<(usize, u32)> = controls.find(text).map(|found| (found.at, found.id)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn the_longest_control_token_is_found_wherever_it_stands() {
        check("", &[]);
        check("ab|>ü", &[]);
        check("x<|a|>bü<|a|><|a", &[(1, 2), (9, 1), (14, 3)]);
        check("ü→→<", &[(2, 5), (5, 5), (8, 3)]);
    }
}
