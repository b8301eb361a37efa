//! Requests for whole works: systems of programs, such as compilers and applications, and long texts, such as business plans and chapters.
//! Hardly anything that lengths were fitted on asks for one, and by their words they look like a function or a paragraph. So what is said
//! of their lengths is a judgement.

use super::phrase_list::FoundPhrase;
use super::stated_length::in_ends;
use super::whole_work_elsewhere::{MAKES_UNSPACED, OTHERWISE_UNSPACED, WHOLE_UNSPACED, WORKS_UNSPACED};
use super::whole_work_words::{
    ANOTHER, BOUNDS, COPIED, FEATURES, INTO, MAKES, ONESELF, OWNED, PARTLY, POLITE, QUOTES, SMALL, SOURCES,
    TURNS, VERBS, WHOLE, WHOLE_BEHIND, WORKS,
};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WholeWork {
    /// Programs that make up a whole.
    System,
    /// A long text.
    Manuscript,
}

/// A stated length of fewer tokens makes no whole work, as in "a business plan in 200 words", and one of more makes a long text of an
/// essay. Both are logarithms.
const STATED_LEAST: f64 = 6.9;
const STATED_LONG: f64 = 7.6;
/// What is at hand is made no work, as in "make it a complete article".
const AT_HAND: [&str; 4] = ["it", "this", "these", "them"];
/// So many words of its name are looked at.
const NAME_WORDS: usize = 8;
/// So many features tell a whole system.
const FEATURES_LEAST: usize = 2;
/// So many items of a list are what a whole system shall have.
const ITEMS_LEAST: usize = 5;

impl WholeWork {
    /// The work that a message asks for, which may state the length of its answer as a logarithm of tokens.
    pub(super) fn of(message: &str, stated: Option<f64>) -> Option<WholeWork> {
        if stated.is_some_and(|length| length < STATED_LEAST) {
            return None;
        }
        let is_long = stated.is_some_and(|length| length >= STATED_LONG);
        in_ends(message, |parts| {
            let [tail, head] = parts else { return None };
            let scope = WorkScope { message, head, is_long };
            let work = scope.work_in(head).or_else(|| scope.work_in(behind_sentence(tail)))?;
            let is_partial = parts.iter().any(|part| PARTLY.iter().any(|words| part.contains(words)));
            (!is_partial).then_some(work)
        })
    }

    /// The least usual thought about one, as a logarithm of tokens. Judgements: of seven migrations of applications (EPAM's)
    /// 17 models thought some 3,600 tokens and wrote 4,300.
    pub(super) fn thought(self) -> f64 {
        match self {
            WholeWork::System => 8.0,
            WholeWork::Manuscript => 7.0,
        }
    }

    /// The least usual answer, as a logarithm of tokens: 4,000 and 2,200. Judgements.
    pub(super) fn answer(self) -> f64 {
        match self {
            WholeWork::System => 8.3,
            WholeWork::Manuscript => 7.7,
        }
    }
}

/// What stands behind the first sentence of a text that begins within one.
fn behind_sentence(text: &str) -> &str {
    text.split_once(['.', '\n', '!', '?', '。', '！', '？']).map_or("", |(_, behind)| behind)
}

/// How many lines of a message are items of a list. Those of a log, a table or a diff are none.
fn count_items(message: &str) -> usize {
    let is_item = |line: &&str| {
        let line = line.trim_start();
        let behind = line.trim_start_matches(|sign: char| sign.is_ascii_digit());
        let signs: &[&str] = if behind.len() < line.len() { &[". ", ") "] } else { &["- ", "* ", "• "] };
        signs.iter().any(|sign| behind.starts_with(sign))
    };
    message.lines().take(64).filter(is_item).count()
}

/// What tells of a message that all of a work is wanted, beside what stands in its sentence.
struct WorkScope<'t> {
    message: &'t str,
    head: &'t str,
    is_long: bool,
}

impl WorkScope<'_> {
    fn work_in(&self, part: &str) -> Option<WholeWork> {
        let mut work = None;
        let asks = |found: &FoundPhrase<'_>| {
            is_word_end(found.after) && is_asked(found.before) && self.work_of(found).is_some()
        };
        if let Some(found) = VERBS.find(part, asks) {
            work = self.work_of(&found);
        }
        work.or_else(|| if part.is_ascii() { None } else { self.unspaced_work(part) })
    }

    /// The work that a verb is followed by.
    fn work_of(&self, verb: &FoundPhrase<'_>) -> Option<WholeWork> {
        let clause = clause_of(verb.after);
        let name = name_in(clause);
        let is_at_hand =
            verb.group == 0 && name.split_whitespace().next().is_some_and(|word| AT_HAND.contains(&word));
        if is_at_hand || name.split_whitespace().any(|word| SMALL.iter().any(|small| word.starts_with(small)))
        {
            return None;
        }
        match verb.group {
            0 => self.made(clause, name, is_head),
            2 => self.made(clause, name, |_| true),
            4 => self.made(clause, name, is_head).filter(|_| is_whole(name, clause)),
            _ => turned(clause, name),
        }
    }

    /// As in "a compiler for a subset of C" and "a full-stack app". Names are told to end by what follows them.
    fn made(&self, clause: &str, name: &str, ends: fn(&str) -> bool) -> Option<WholeWork> {
        let is_meant = |found: &FoundPhrase<'_>| {
            let is_named = found.before.len() < name.len() && is_word_end(found.after) && ends(found.after);
            is_named
                && !is_everyday(found, clause)
                && match found.group {
                    0..=3 => true,
                    4 => is_whole(name, clause) || !is_owned(name) && self.has_features(),
                    _ => is_whole(name, clause) || self.is_long,
                }
        };
        let found = WORKS.find(clause, is_meant)?;
        Some(if found.group % 2 == 0 { WholeWork::System } else { WholeWork::Manuscript })
    }

    fn has_features(&self) -> bool {
        let features = FEATURES.iter().filter(|feature| self.head.contains(*feature));
        features.take(FEATURES_LEAST).count() >= FEATURES_LEAST || count_items(self.message) >= ITEMS_LEAST
    }

    /// The work that a sentence of a script without blanks, or with the verb at its end, asks for.
    fn unspaced_work(&self, part: &str) -> Option<WholeWork> {
        let found = WORKS_UNSPACED.find(part, |found| {
            let sentence = sentence_around(part, found);
            let says = |words: &[&str]| words.iter().any(|word| sentence.contains(word));
            let named = &part[..part.len() - found.after.len()];
            let is_asked = if named.ends_with(is_chinese) {
                says(MAKES_UNSPACED) && ends_clause(found.after)
            } else {
                MAKES_UNSPACED.iter().any(|verb| found.after.contains(verb)) || named.ends_with("raft")
            };
            is_asked
                && !says(OTHERWISE_UNSPACED)
                && (found.group < 2 || says(&WHOLE_UNSPACED) || self.is_long)
        })?;
        Some(if found.group == 1 { WholeWork::Manuscript } else { WholeWork::System })
    }
}

/// Whether what was found is a thing of every day by that name: a raft of wood, a clone of an array, a system of equations.
fn is_everyday(found: &FoundPhrase<'_>, clause: &str) -> bool {
    match clause.get(found.before.len()..clause.len() - found.after.len()) {
        Some("raft") => found.before.split_whitespace().next() == Some("a"),
        Some("system") => found.after.starts_with(" of "),
        Some("clone") => COPIED.iter().any(|words| found.after.starts_with(words)),
        _ => false,
    }
}

/// Whether a name is that of something that there is already, as in "build the project and run its tests".
fn is_owned(name: &str) -> bool {
    name.split_whitespace().next().is_some_and(|word| OWNED.contains(&word))
}

/// Whether a text that ends here has quotes behind it, or something that is spoken of: "Explain this prompt: …".
fn is_quoted(before: &str) -> bool {
    let before = before.trim_end();
    if let Some(told) = before.strip_suffix(['"', '`']) {
        return !told.trim().is_empty();
    }
    let line = before.strip_suffix(':').and_then(|told| told.rsplit(['.', '!', '?', '\n']).next());
    line.is_some_and(|line| QUOTES.iter().any(|words| line.contains(words)))
}

/// Whether what stands before a verb leaves it to ask for something: it begins its sentence, or words that ask do.
fn is_asked(before: &str) -> bool {
    let clause = before.rsplit(['.', '!', '?', '\n', ':', ';', ',', ')', '"']).next().unwrap_or_default();
    if is_quoted(&before[..before.len() - clause.len()]) {
        return false;
    }
    let (mut is_of_oneself, mut is_of_another) = (false, false);
    for word in clause.split_whitespace() {
        if !POLITE.contains(&word) && !MAKES.contains(&word) && !TURNS.contains(&word) {
            return false;
        }
        is_of_oneself |= ONESELF.contains(&word);
        is_of_another |= ANOTHER.contains(&word);
    }
    is_of_another || !is_of_oneself
}

/// What follows a verb, up to the end of its sentence. The stop of "Next.js" ends none.
fn clause_of(after: &str) -> &str {
    let ends = |at: usize, sign: char| match sign {
        '!' | '?' | '\n' | ';' | ':' | '。' => true,
        '.' => after[at + 1..].chars().next().is_none_or(char::is_whitespace),
        _ => false,
    };
    let end = after.char_indices().find(|(at, sign)| ends(*at, *sign));
    &after[..end.map_or(after.len(), |(at, _)| at)]
}

/// What a clause begins with that names a work: up to a word or a comma that says of what.
fn name_in(clause: &str) -> &str {
    let mut end = 0;
    let mut words = 0;
    for word in clause.split_inclusive(' ') {
        let bare = word.trim();
        if BOUNDS.contains(&bare) && bare != "based" || bare.starts_with("d'") || words > NAME_WORDS {
            break;
        }
        words += usize::from(!bare.is_empty());
        end += word.len();
        if bare.ends_with(',') {
            break;
        }
    }
    &clause[..end]
}

/// As in "this codebase" and "our app from one framework to another".
fn turned(clause: &str, name: &str) -> Option<WholeWork> {
    let is_meant = |found: &FoundPhrase<'_>| {
        let is_named = found.before.len() < name.len() && is_word_end(found.after) && is_head(found.after);
        is_named && (found.group == 0 || INTO.iter().any(|word| found.after.starts_with(word)))
    };
    SOURCES.find(clause, is_meant).map(|_| WholeWork::System)
}

fn is_word_end(after: &str) -> bool {
    !after.starts_with(|sign: char| sign.is_alphanumeric() || matches!(sign, '-' | '\'' | '_'))
}

/// Whether a name ends here: that of "chapter 3 of a novel" does, and that of "a compiler engineer" does not.
fn is_head(after: &str) -> bool {
    let next = after.split_whitespace().next();
    let is_bound = |word: &str| BOUNDS.contains(&word) || !word.starts_with(char::is_alphabetic);
    !after.starts_with(' ') || next.is_none_or(is_bound)
}

fn is_whole(name: &str, clause: &str) -> bool {
    name.split_whitespace().any(|word| WHOLE.contains(&word.trim_end_matches(',')))
        || WHOLE_BEHIND.iter().any(|words| clause.contains(words))
}

/// True of the letters that names in Chinese end with. Those in Japanese have a particle behind them.
fn is_chinese(letter: char) -> bool {
    matches!(letter, '\u{4e00}'..='\u{9fff}')
}

/// The sentence that something was found in, without the sign at its end.
fn sentence_around<'t>(part: &'t str, found: &FoundPhrase<'t>) -> &'t str {
    const ENDS: [char; 9] = ['。', '！', '？', '\n', '；', '!', '?', '.', '।'];
    let from = found.before.rfind(ENDS).unwrap_or(0);
    let end = found.after.find(ENDS).unwrap_or(found.after.len());
    &part[from..part.len() - found.after.len() + end]
}

/// Whether a Chinese clause ends here, and asks nothing.
fn ends_clause(after: &str) -> bool {
    let next = after.trim_start_matches(['吧', '"', '”', '》']).chars().next();
    next.is_none_or(|sign| "。，,；;！!（(\n.".contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Option<WholeWork> {
        WholeWork::of(text, super::super::stated_length::stated_length(text))
    }

    #[test]
    fn systems_and_long_texts_are_whole_works() {
        for text in [
            "Implement Raft in Go with tests",
            "Port this codebase from Python 2 to 3.",
            "Write a compiler for a subset of C",
            "Design and build a multi-tenant billing service",
            "Build a Chrome extension that blocks ads, with an options page and tests.",
            "Please create a full-stack todo app with React.",
            "I want you to rewrite this project in Rust.",
            "Build a web app. It shall have:\n- users\n- teams\n- files\n- search\n- an audit log",
            "Schreibe einen Compiler für eine Teilmenge von C.",
            "Écris un compilateur pour un sous-ensemble de C.",
            "Desarrolla una aplicación web completa con autenticación y base de datos.",
            "Напиши компилятор для подмножества C.",
            "用Go实现Raft，并编写测试。",
            "设计并实现一个多租户计费系统。",
            "Cのサブセットのコンパイラを書いてください。",
            "C 부분집합의 컴파일러를 작성해 줘.",
        ] {
            assert_eq!(check(text), Some(WholeWork::System), "{text}");
        }
        for text in [
            "Write a full business plan for a bakery.",
            "Write the first chapter of a thriller set in Oslo.",
            "Write a 3,000-word essay on the causes of the First World War.",
            "You are a gardener. Write a comprehensive guide to container gardening.",
            "Schreibe das erste Kapitel eines Romans über eine Uhrmacherin.",
            "Rédige un business plan complet pour une boulangerie.",
            "Escribe un plan de negocios completo para una cafetería.",
            "写一份完整的面包店商业计划书。",
            "パン屋の事業計画書を作成してください。",
            "बेकरी के लिए पूरा बिज़नेस प्लान लिखें।",
        ] {
            assert_eq!(check(text), Some(WholeWork::Manuscript), "{text}");
        }
    }

    #[test]
    fn a_work_that_is_asked_for_at_the_end_of_a_long_message_is_one() {
        let notes = "我们在一家小公司工作，团队不大。".repeat(12);
        assert_eq!(check(&format!("{notes}\n谢谢！用Go实现Raft，并编写测试。")), Some(WholeWork::System));
        assert_eq!(check(&format!("{notes}用Go实现Raft，并编写测试。")), Some(WholeWork::System));
        let rules =
            "1. It has users.\n2. It has teams.\n3. It has files.\n4. It has search.\n5. It has a log.";
        assert_eq!(check(&format!("Build a web app.\n{rules}")), Some(WholeWork::System));
    }

    #[test]
    fn functions_questions_and_what_is_about_a_work_are_none() {
        for text in [
            "Explain Raft",
            "What is a compiler?",
            "How long does it take to write a compiler?",
            "Should I rewrite this project in Rust?",
            "I want to write a compiler. Where do I start?",
            "Write a function that implements a compiler pass.",
            "Write a unit test for the compiler.",
            "Fix this compiler error: expected ';'",
            "Write a job description for a compiler engineer.",
            "Write a title for my novel.",
            "Create a roman numeral converter.",
            "Summarize the first chapter of Moby Dick.",
            "Write a business plan in 200 words.",
            "Write a short story about a dog.",
            "Write a simple compiler for sums.",
            "Create a flask app that says hello.",
            "Create a React component for a login form.",
            "Port forwarding on my router does not work, why?",
            "Build my project: error: linker not found",
            "Build the project with docker, run the tests and tell me what fails.",
            "Explain this prompt: \"Implement Raft in Go with tests\"",
            "Explain this prompt: implement Raft in Go with tests",
            "Classify the intent of this message:\nBuild an e-commerce website",
            "Extract the product. Text: \"Write a business plan for a bakery.\"",
            "Do not write a compiler, explain how one works.",
            "Write a compiler for a subset of C. Do not write the whole thing, show me the lexer.",
            "Write a business plan for a bakery, just the outline.",
            "Write a complete implementation of quicksort in C.",
            "Write the complete system of equations for this circuit.",
            "What does this do?\n```\nbuild a complete app with cargo\n```",
            "Build a raft for the pond with my kids.",
            "Create a clone of an array in JavaScript.",
            "Write a tool that reads this:\n1,a\n2,b\n3,c\n4,d\n5,e\n6,f",
            "Was gehört in einen Businessplan?",
            "如何写商业计划书？",
            "写一个函数，反转字符串",
            "小説を書く方法を教えてください。",
            "我写了一部小说，请提意见。",
            "我正在写论文，有推荐的参考文献吧",
            "小説を書いています。",
            "시스템을 전체 개발하고 있어요.",
            "",
        ] {
            assert_eq!(check(text), None, "{text}");
        }
    }
}
