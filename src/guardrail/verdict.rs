//! What a hook says, and what is made of it. Pure.

use stint_types::strict_json;

/// The longest message of a refusal that callers are given, in characters.
const MESSAGE_MAX: usize = 1_000;

/// What a hook answers.
#[derive(Debug, PartialEq)]
pub(super) enum HookVerdict {
    Allow,
    Refuse(Option<String>),
    /// The new texts, by the number of the message or of the choice.
    Rewrite(Vec<(usize, String)>),
}

/// Why something is not passed on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Objection {
    /// A hook refuses it, with this message for the caller.
    #[error("{}", .0.as_deref().unwrap_or("a guardrail of this gateway refuses this"))]
    Refused(Option<String>),
    /// A hook could not judge it, and what is not judged is not passed on.
    #[error("a guardrail of this gateway could not judge this; try again shortly")]
    Unjudged,
    /// It is given as tokens, which no hook can read.
    #[error(
        "a guardrail of this gateway reads what is asked, and cannot read tokens: send the prompt as text"
    )]
    Tokens,
}

/// What becomes of an answer.
#[derive(Debug, PartialEq)]
pub enum AnswerVerdict {
    /// It is given, with these choices' texts in place of their own.
    Give(Vec<(usize, String)>),
    /// It is not.
    Withhold(Objection),
}

impl HookVerdict {
    /// Reads what a hook answered: `list` and `text` are the members of a rewrite. There are so many things to judge.
    pub(super) fn read(answer: &[u8], list: &str, text: &str, count: usize) -> Option<HookVerdict> {
        let answer = strict_json::read(answer, strict_json::VALUES_MAX).ok()?;
        match answer.get("verdict")?.as_str()? {
            "allow" => Some(HookVerdict::Allow),
            "refuse" => Some(HookVerdict::Refuse(answer["message"].as_str().map(shortened))),
            "rewrite" => {
                let items = answer.get(list)?.as_array()?.iter();
                let read = items.map(|item| {
                    let index =
                        usize::try_from(item["index"].as_u64()?).ok().filter(|index| *index < count)?;
                    Some((index, item[text].as_str()?.to_owned()))
                });
                read.collect::<Option<_>>().map(HookVerdict::Rewrite)
            }
            _ => None,
        }
    }

    pub(super) fn as_str(&self) -> &'static str {
        match self {
            HookVerdict::Allow => "allow",
            HookVerdict::Refuse(_) => "refuse",
            HookVerdict::Rewrite(_) => "rewrite",
        }
    }
}

fn shortened(message: &str) -> String {
    message.chars().filter(|letter| !letter.is_control()).take(MESSAGE_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &str, expected: Option<&HookVerdict>) {
        assert_eq!(
            HookVerdict::read(answer.as_bytes(), "messages", "content", 2).as_ref(),
            expected,
            "{answer}"
        );
    }

    #[test]
    fn a_verdict_is_one_of_three_words() {
        check(r#"{"verdict": "allow"}"#, Some(&HookVerdict::Allow));
        check(
            r#"{"verdict": "refuse", "message": "no\nnames"}"#,
            Some(&HookVerdict::Refuse(Some("nonames".into()))),
        );
        check(r#"{"verdict": "refuse"}"#, Some(&HookVerdict::Refuse(None)));
        check(r#"{"verdict": "maybe"}"#, None);
        check("{}", None);
        check(r#"{"verdict": "refuse", "verdict": "allow"}"#, None);
        check(r#"{"verdict": "allow", "notes": {"a": 1, "a": 2}}"#, None);
        check("", None);
    }

    #[test]
    fn a_rewrite_names_what_is_there() {
        let one = r#"{"verdict": "rewrite", "messages": [{"index": 1, "content": "x"}]}"#;
        check(one, Some(&HookVerdict::Rewrite(vec![(1, "x".to_owned())])));
        check(&one.replace('1', "2"), None);
        check(&one.replace("\"x\"", "7"), None);
        check(&one.replace("messages", "choices"), None);
    }
}
