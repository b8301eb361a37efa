//! `unknown_members`: what a backend does with members of a request that nobody here knows.

use crate::config::reader::Section;
use stint_backend::local;
use stint_backend::remote::members;
use stint_types::catalog::{MemberRules, UnknownMembers};

use super::kind::BackendKind;

const WORDS: [(&str, UnknownMembers); 3] =
    [("pass", UnknownMembers::Pass), ("drop", UnknownMembers::Drop), ("refuse", UnknownMembers::Refuse)];

/// What a backend of that kind does with them: one's own servers are sent them, and know best what they make of them; others
/// are sent what they document, and no more unless the operator says so.
pub(super) fn rules(section: &Section<'_>, kind: BackendKind, is_own: bool) -> MemberRules {
    let usual = if is_own { UnknownMembers::Pass } else { UnknownMembers::Refuse };
    MemberRules {
        unknown: section.word("unknown_members", &WORDS).unwrap_or(usual),
        documented: documented(kind),
        resumed: resumed(kind),
    }
}

/// What a model in the local engine does with them.
pub(super) fn local_rules() -> MemberRules {
    MemberRules { documented: local::DOCUMENTED_MEMBERS, ..MemberRules::default() }
}

fn documented(kind: BackendKind) -> &'static [&'static str] {
    match kind {
        BackendKind::Vllm | BackendKind::Sglang => members::SALTED,
        BackendKind::OpenRouter => members::OPENROUTER,
        BackendKind::Mistral => members::MISTRAL,
        BackendKind::DashScope => members::DASHSCOPE,
        _ => &[],
    }
}

fn resumed(kind: BackendKind) -> Option<&'static [&'static str]> {
    match kind {
        BackendKind::LlamaCpp => Some(members::LLAMACPP_RESUMED),
        BackendKind::Vllm => Some(members::VLLM_RESUMED),
        _ => None,
    }
}
