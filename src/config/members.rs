//! `unknown_members`: what a backend does with members of a request that nobody here knows.

use crate::backend::remote::members;
use crate::catalog::{MemberRules, UnknownMembers};

use super::kind::Kind;
use super::reader::Section;

const WORDS: [(&str, UnknownMembers); 3] =
    [("pass", UnknownMembers::Pass), ("drop", UnknownMembers::Drop), ("refuse", UnknownMembers::Refuse)];

/// What a backend of that kind does with them: one's own servers are sent them, and know best what they make of them; others
/// are sent what they document, and no more unless the operator says so.
pub(super) fn rules(section: &Section<'_>, kind: Kind, is_own: bool) -> MemberRules {
    let usual = if is_own { UnknownMembers::Pass } else { UnknownMembers::Refuse };
    MemberRules {
        unknown: section.word("unknown_members", &WORDS).unwrap_or(usual),
        documented: documented(kind),
        resumed: resumed(kind),
    }
}

fn documented(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Vllm | Kind::Sglang => members::SALTED,
        Kind::OpenRouter => members::OPENROUTER,
        Kind::Mistral => members::MISTRAL,
        Kind::DashScope => members::DASHSCOPE,
        _ => &[],
    }
}

fn resumed(kind: Kind) -> Option<&'static [&'static str]> {
    match kind {
        Kind::LlamaCpp => Some(members::LLAMACPP_RESUMED),
        Kind::Vllm => Some(members::VLLM_RESUMED),
        _ => None,
    }
}
