//! Reads the paths out of Rust text, without a parser: enough for `use` trees, inline modules and paths in code.

/// A path in a file, from the crate's root down.
pub(super) struct Named {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
    /// The name that it gets here, by `as`.
    pub(super) alias: Option<String>,
    pub(super) form: Form,
    /// True if it begins with a name: it is a path of this crate only if the file has a module of that name.
    pub(super) is_relative: bool,
}

/// How a path is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// In a `use`, for the file itself.
    Use,
    /// In a `pub use` (of any visibility), for others.
    Reexport,
    /// In code.
    Code,
}

/// A word, a `::` or another character, and its line.
pub(super) struct Token {
    pub(super) text: String,
    pub(super) line: usize,
}

/// Every path, resolved from the module `file`.
pub(super) fn paths(tokens: &[Token], file: &[String]) -> Vec<Named> {
    let mut named = Vec::new();
    // For each open brace, whether it opened an inline module.
    let mut braces = Vec::new();
    let mut place = file.to_vec();
    let mut form = Form::Code;
    let mut i = 0;
    while let Some(token) = tokens.get(i) {
        let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
        let starts = matches!(text(i + 1), "::" | "as") && (i == 0 || text(i - 1) != "::");
        match token.text.as_str() {
            "{" => {
                let inline = i >= 2 && text(i - 2) == "mod";
                if inline {
                    place.push(text(i - 1).to_owned());
                }
                braces.push(inline);
            }
            "}" if braces.pop() == Some(true) => drop(place.pop()),
            "use" => form = if is_public(tokens, i) { Form::Reexport } else { Form::Use },
            ";" => form = Form::Code,
            "crate" | "super" | "self" if starts => {
                i = tree(tokens, i, Base { path: &place, form, is_relative: false }, &mut named);
                continue;
            }
            word if starts && text(i + 1) == "::" && word.starts_with(|c: char| c.is_ascii_lowercase()) => {
                i = tree(tokens, i, Base { path: &place, form, is_relative: true }, &mut named);
                continue;
            }
            _ => {}
        }
        i += 1;
    }
    named
}

/// True if the `use` at `i` is for others too.
fn is_public(tokens: &[Token], i: usize) -> bool {
    let before = tokens[..i].iter().rev().take(5);
    before
        .take_while(|token| !matches!(token.text.as_str(), ";" | "{" | "}"))
        .any(|token| token.text == "pub")
}

/// What a tree of paths begins with.
#[derive(Clone, Copy)]
struct Base<'a> {
    path: &'a [String],
    form: Form,
    is_relative: bool,
}

/// Reads one path or tree of paths that begins at `i`, below `base`; returns where it ends.
fn tree(tokens: &[Token], mut i: usize, base: Base<'_>, named: &mut Vec<Named>) -> usize {
    let mut path = base.path.to_vec();
    let line = tokens.get(i).map_or(0, |token| token.line);
    while let Some(token) = tokens.get(i) {
        match token.text.as_str() {
            "crate" => path.clear(),
            "super" => drop(path.pop()),
            "self" => {}
            "{" => return group(tokens, i + 1, Base { path: &path, ..base }, named),
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
    let alias = tokens.get(i).filter(|token| token.text == "as").and_then(|_| tokens.get(i + 1));
    named.push(Named {
        path,
        line,
        alias: alias.map(|token| token.text.clone()),
        form: base.form,
        is_relative: base.is_relative,
    });
    i
}

fn group(tokens: &[Token], mut i: usize, base: Base<'_>, named: &mut Vec<Named>) -> usize {
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
