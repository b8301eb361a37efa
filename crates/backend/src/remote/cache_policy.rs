//! Whether a provider is to keep a prompt in its cache, where its caller does not say.

use stint_prompt::token_bound;
use stint_types::catalog::ImageTokens;
use stint_types::chat::{Request, Role};
use stint_types::units::{Chance, Tokens};

/// When a prompt is to be kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Caching {
    /// Where it is likely enough to come again, with more at its end.
    #[default]
    WhereItPays,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// When a model's prompts are to be kept, and what that depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CachePolicy {
    /// When they are.
    pub caching: Caching,
    /// How likely a prompt must be to come again for that to pay; nothing where it never does.
    pub break_even: Option<Chance>,
}

/// How likely a request with tools is to be followed by the next step of its agent. Guessed: agents take several steps.
const AFTER_TOOLS: f64 = 0.8;
/// How likely a conversation goes on that went on before. Guessed from public logs of chats, of which about half do.
const AFTER_ANSWER: f64 = 0.5;
/// How likely a first question is followed by another within minutes. Guessed from the same.
const AFTER_FIRST: f64 = 0.2;

impl Default for CachePolicy {
    /// A fourth more for what is kept, and nine tenths less for what is read again.
    fn default() -> CachePolicy {
        CachePolicy { caching: Caching::default(), break_even: Some(Chance::new(0.25 / 0.9)) }
    }
}

impl CachePolicy {
    /// Whether a request's prompt is to be kept. What was kept of it before is found again only if it is to be kept once more.
    /// A prompt that is shorter than `least`, by the bound of its tokens, would not be kept, marked or not.
    pub(super) fn keeps(&self, request: &Request, least: Option<Tokens>, images: &ImageTokens) -> bool {
        match self.caching {
            Caching::Always => true,
            Caching::Never => false,
            Caching::WhereItPays => {
                let is_short =
                    || least.is_some_and(|least| token_bound::prompt_tokens(request, images) < least);
                self.break_even.is_some_and(|least| Chance::new(chance_of_reuse(request)) > least)
                    && !is_short()
            }
        }
    }
}

fn chance_of_reuse(request: &Request) -> f64 {
    let goes_on = request.messages.iter().any(|message| message.role == Role::Assistant);
    match (request.tools.is_empty(), goes_on) {
        (false, _) => AFTER_TOOLS,
        (true, true) => AFTER_ANSWER,
        (true, false) => AFTER_FIRST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use stint_types::chat::{Message, Tool};

    #[test]
    fn a_prompt_is_kept_where_it_is_likely_to_come_again_and_that_is_cheaper() {
        let first = Request::new("m", vec![Message::text(Role::User, "Who?")]);
        let mut second = first.clone();
        second.messages.push(Message::text(Role::Assistant, "Nobody."));
        let tool = Tool::new("f", Value::Null);
        let agent = Request { tools: vec![tool], ..first.clone() };
        let images = ImageTokens::default();
        let kept = |policy: CachePolicy, least: Option<u64>| {
            [&first, &second, &agent].map(|request| policy.keeps(request, least.map(Tokens), &images))
        };
        let usual = CachePolicy::default();
        assert_eq!(kept(usual, None), [false, true, true]);
        assert_eq!(kept(CachePolicy { caching: Caching::Never, ..usual }, None), [false; 3]);
        assert_eq!(kept(CachePolicy { caching: Caching::Always, ..usual }, None), [true; 3]);
        assert_eq!(kept(CachePolicy { break_even: None, ..usual }, None), [false; 3]);
        assert_eq!(kept(usual, Some(10_000)), [false; 3]);
        assert_eq!(kept(usual, Some(2)), [false, true, true]);
    }
}
