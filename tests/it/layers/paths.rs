//! Reads the paths out of Rust text, without a parser: enough for `use` trees, inline modules and paths in code.

/// A path in a file, from the crate's root down, and its line.
pub(super) struct Named {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
}

/// A word, a `::` or another character, and its line.
pub(super) struct Token {
    pub(super) text: String,
    pub(super) line: usize,
}

/// Every path that starts at `crate`, `super` or `self`, resolved from the module `file`.
pub(super) fn paths(tokens: &[Token], file: &[String]) -> Vec<Named> {
    let mut named = Vec::new();
    // For each open brace, whether it opened an inline module.
    let mut braces = Vec::new();
    let mut place = file.to_vec();
    let mut i = 0;
    while let Some(token) = tokens.get(i) {
        let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
        match token.text.as_str() {
            "{" => {
                let inline = i >= 2 && text(i - 2) == "mod";
                if inline {
                    place.push(text(i - 1).to_owned());
                }
                braces.push(inline);
            }
            "}" if braces.pop() == Some(true) => drop(place.pop()),
            "crate" | "super" | "self"
                if matches!(text(i + 1), "::" | "as") && (i == 0 || text(i - 1) != "::") =>
            {
                i = tree(tokens, i, &place, &mut named);
                continue;
            }
            _ => {}
        }
        i += 1;
    }
    named
}

/// Reads one path or tree of paths that begins at `i`, below `base`; returns where it ends.
fn tree(tokens: &[Token], mut i: usize, base: &[String], named: &mut Vec<Named>) -> usize {
    let mut path = base.to_vec();
    let line = tokens.get(i).map_or(0, |token| token.line);
    while let Some(token) = tokens.get(i) {
        match token.text.as_str() {
            "crate" => path.clear(),
            "super" => drop(path.pop()),
            "self" => {}
            "{" => return group(tokens, i + 1, &path, named),
            // A generic argument, `::<T>`; paths in it are found on their own.
            "<" => break,
            segment => path.push(segment.to_owned()),
        }
        i += 1;
        if tokens.get(i).is_none_or(|token| token.text != "::") {
            break;
        }
        i += 1;
    }
    named.push(Named { path, line });
    i
}

fn group(tokens: &[Token], mut i: usize, base: &[String], named: &mut Vec<Named>) -> usize {
    while let Some(token) = tokens.get(i) {
        match token.text.as_str() {
            "}" => return i + 1,
            "," => i += 1,
            "as" => i += 2,
            _ => i = tree(tokens, i, base, named),
        }
    }
    i
}

/// Identifiers, `::` and single other characters; comments, texts, characters and lifetimes are left out.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let length = match skipped(rest) {
            0 => {
                let length = word(rest).max(if rest.starts_with("::") { 2 } else { first.len_utf8() });
                if !first.is_whitespace() {
                    tokens.push(Token { text: rest[..length].to_owned(), line });
                }
                length
            }
            length => length,
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

fn word(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// The length of the comment, text, character or lifetime that `text` begins with; 0 where it begins with none.
fn skipped(text: &str) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return comment(text);
    }
    let prefix = text.find(|c: char| !"bcr".contains(c)).filter(|length| *length <= 2).unwrap_or(0);
    let body = &text[prefix..];
    let hashes = body.len() - body.trim_start_matches('#').len();
    if text[..prefix].contains('r') && body[hashes..].starts_with('"') {
        let end = format!("\"{}", "#".repeat(hashes));
        let inner = &body[hashes + 1..];
        return inner.find(&end).map_or(text.len(), |at| prefix + hashes + 1 + at + end.len());
    }
    if body.starts_with('"') {
        return prefix + quoted(body, '"');
    }
    if !text.starts_with('\'') {
        return 0;
    }
    let is_char = text[1..].starts_with('\\') || text.chars().nth(2) == Some('\'');
    if is_char { quoted(text, '\'') } else { 1 + word(&text[1..]) }
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        let (change, length) = match rest {
            [b'/', b'*', ..] => (1, 2),
            [b'*', b'/', ..] => (-1, 2),
            _ => (0, 1),
        };
        depth += change;
        at += length;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}
