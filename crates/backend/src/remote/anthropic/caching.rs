//! Whether the provider is to keep a prompt in its cache, where its caller does not say.

use serde_json::{Value, json};

use crate::remote::wire;
use stint_prompt::token_bound;
use stint_types::chat::{CacheTtl, Request, Role};
use stint_types::units::Chance;

use super::Settings;

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

/// How likely a request with tools is to be followed by the next step of its agent. Guessed: agents take several steps.
const AFTER_TOOLS: f64 = 0.8;
/// How likely a conversation goes on that went on before. Guessed from public logs of chats, of which about half do.
const AFTER_ANSWER: f64 = 0.5;
/// How likely a first question is followed by another within minutes. Guessed from the same.
const AFTER_FIRST: f64 = 0.2;

/// Whether a request's prompt is to be kept. What was kept of it before is found again only if it is to be kept once more.
pub(super) fn is_kept(settings: &Settings, request: &Request) -> bool {
    match settings.caching {
        Caching::Always => true,
        Caching::Never => false,
        Caching::WhereItPays => {
            let pays =
                settings.cache_break_even.is_some_and(|least| Chance::new(chance_of_reuse(request)) > least);
            pays && !is_too_short(settings, request)
        }
    }
}

/// Whether the provider would not keep it, marked or not: by the bound of its tokens, so that none is left out that might be kept.
fn is_too_short(settings: &Settings, request: &Request) -> bool {
    let bound = || token_bound::prompt_tokens(request, &settings.client.images);
    settings.rules.cache_min.is_some_and(|least| bound() < least)
}

/// Has all of a request kept, and what stands before its messages by itself too: that holds where something makes the provider
/// read the messages anew.
pub(super) fn mark(body: &mut Value) {
    wire::mark_for_cache(body, CacheTtl::Minutes);
    if let Some(Value::String(text)) = body.get("system") {
        body["system"] = json!([{"type": "text", "text": text}]);
    }
    let before = if body.get("system").is_some() { "system" } else { "tools" };
    let last = body.get_mut(before).and_then(Value::as_array_mut).and_then(|blocks| blocks.last_mut());
    if let Some(block) = last {
        wire::mark_for_cache(block, CacheTtl::Minutes);
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
    use stint_types::catalog::ConversationRules;
    use stint_types::chat::{Message, Tool};
    use stint_types::units::Tokens;

    #[test]
    fn a_prompt_is_kept_where_it_is_likely_to_come_again_and_that_is_cheaper() {
        let first = Request::new("m", vec![Message::text(Role::User, "Who?")]);
        let mut second = first.clone();
        second.messages.push(Message::text(Role::Assistant, "Nobody."));
        let tool = Tool { name: "f".to_owned(), declaration: Value::Null, cache_breakpoint: None };
        let agent = Request { tools: vec![tool], ..first.clone() };
        let kept = |settings: &Settings| [&first, &second, &agent].map(|request| is_kept(settings, request));
        let usual = Settings::default();
        assert_eq!(kept(&usual), [false, true, true]);
        assert_eq!(kept(&Settings { caching: Caching::Never, ..usual.clone() }), [false; 3]);
        assert_eq!(kept(&Settings { caching: Caching::Always, ..usual.clone() }), [true; 3]);
        assert_eq!(kept(&Settings { cache_break_even: None, ..usual.clone() }), [false; 3]);
        let least = |tokens| ConversationRules { cache_min: Some(tokens), ..ConversationRules::default() };
        assert_eq!(kept(&Settings { rules: least(Tokens(10_000)), ..usual.clone() }), [false; 3]);
        assert_eq!(kept(&Settings { rules: least(Tokens(2)), ..usual }), [false, true, true]);
    }
}
