//! Whether a text is set with formulas. Amounts, variables of shells, paths and escaped quotes have the same signs.

/// Commands of LaTeX that prose and programs have not, and that hardly a formula does without.
const COMMANDS: [&str; 60] = [
    "frac",
    "dfrac",
    "tfrac",
    "sqrt",
    "sum",
    "prod",
    "int",
    "lim",
    "binom",
    "cdot",
    "times",
    "div",
    "pm",
    "mp",
    "le",
    "leq",
    "ge",
    "geq",
    "neq",
    "equiv",
    "approx",
    "pmod",
    "mod",
    "mid",
    "in",
    "notin",
    "subset",
    "cup",
    "cap",
    "infty",
    "ldots",
    "cdots",
    "dots",
    "alpha",
    "beta",
    "gamma",
    "theta",
    "lambda",
    "pi",
    "angle",
    "triangle",
    "circ",
    "overline",
    "vec",
    "left",
    "right",
    "mathbb",
    "mathrm",
    "mathbf",
    "mathcal",
    "operatorname",
    "text",
    "boxed",
    "begin",
    "sin",
    "cos",
    "tan",
    "log",
    "ln",
    "forall",
];

/// Whether a formula of TeX stands in it.
pub(super) fn has_formula(text: &str) -> bool {
    has_command(text)
        || has_dollars_around(text)
        || is_between(text, r"\(", r"\)")
        || is_between(text, r"\[", r"\]")
}

/// As in `\frac{1}{2}` and `25\%`, and not as in `C:\times` or `"a\nb"`.
fn has_command(text: &str) -> bool {
    text.match_indices('\\').any(|(at, _)| {
        let is_of_a_path = matches!(text[..at].bytes().next_back(), Some(b':' | b'\\' | b'.' | b'/'));
        let rest = &text[at + 1..];
        let name = &rest[..rest.bytes().take_while(u8::is_ascii_alphabetic).count()];
        // A file's name goes on, and a folder has one within it.
        let is_file = match rest.as_bytes().get(name.len()..) {
            Some([b'.', next, ..]) => next.is_ascii_alphanumeric(),
            Some([b'\\', b'\\', ..]) => true,
            _ => false,
        };
        let is_sign = matches!(rest.as_bytes(), [b'%', ..] | [b'$', b'0'..=b'9', ..]);
        !is_of_a_path && !is_file && (is_sign || COMMANDS.contains(&name))
    })
}

/// As Pandoc tells them: the first dollar stands before something and the second behind something, with no number right after it. What
/// `${…}` and `$name$other` are is the business of shells.
fn has_dollars_around(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut opened: Option<usize> = None;
    for (at, _) in text.match_indices('$') {
        let (before, after) = (at.checked_sub(1).map(|at| bytes[at]), bytes.get(at + 1).copied());
        let closes = opened.is_some_and(|from| {
            let is_display = from + 1 < at && bytes[from + 1] == b'$';
            let is_ordinal = ["th", "st", "nd", "rd"].iter().any(|end| text[at + 1..].starts_with(end));
            let goes_on = |after: u8| after.is_ascii_alphanumeric() || after == b'_' || after == b'{';
            let ends = is_ordinal || !after.is_some_and(goes_on);
            let is_tight = before.is_some_and(|before| !before.is_ascii_whitespace() && before != b'$');
            ends && (is_tight || is_display && after == Some(b'$')) && !text[from..at].contains("\n\n")
        });
        if closes {
            return true;
        }
        let opens =
            after.is_some_and(|after| !after.is_ascii_whitespace() && after != b'{') && before != Some(b'$');
        opened = if opens { Some(at) } else { opened.filter(|from| from + 1 == at) };
    }
    false
}

fn is_between(text: &str, open: &str, close: &str) -> bool {
    let is_escaped = |at: usize| text[..at].ends_with('\\');
    let opened = text.match_indices(open).find(|(at, _)| !is_escaped(*at));
    opened.is_some_and(|(at, _)| text[at + open.len()..].contains(close))
}

#[cfg(test)]
mod tests {
    use super::has_formula;

    #[test]
    fn formulas_are_told_from_amounts_paths_and_programs() {
        for text in [
            r"Find all $n$ such that $\frac{n^2+1}{n-3}$ is an integer.",
            "Let f be a function with $f(x)=x^2$.",
            r"What is \(x^2\) for \(x = 3\)?",
            "Solve\n$$x^2 = 2$$\nfor x.",
            "$$\nx^2 = 2\n$$",
            r"a \in A, b \le c",
            "Is $n$-th or $m$ larger?",
            "Her parents held a party on the $1000$th day.",
            r"It starts at $ \$100 $ and increases $ 25\% $.",
        ] {
            assert!(has_formula(text), "{text}");
        }
        for text in [
            "Extract the vendor: total $20.00, shipping $5.00, tax $1.",
            "Pro is $20, Team is $50. Which should I take?",
            r"Open C:\Users\me\notes.txt and C:\Users\me\text.txt",
            "for f in $FILES; do mv $f $TARGET; done",
            "$ npm install\n$ npm run build",
            "`${first} and ${second}`, `${a}${b}`",
            r#"{"message": "said \"no\"\nand \"yes\"", "path": "C:\\in\\x"}"#,
            "between $5-$10, or $3/$4",
            "<?php $a=$b; $c = $d;",
        ] {
            assert!(!has_formula(text), "{text}");
        }
    }
}
