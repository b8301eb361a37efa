//! Derives what a request needs of a model: its service and its capabilities.

use std::sync::Arc;

use serde_json::Value;

use crate::gateway::RequestRefusal;
use stint_backend::{Failure, UnsupportedFeature};
use stint_types::catalog::{Capability, Needs, Service};
use stint_types::chat::{CompletionKind, ContentPart, MemberPhase, Request};

/// The capabilities without which the request cannot be served as it was meant.
pub(crate) fn of(request: &Request) -> Needs {
    let (mut images, mut documents) = (false, false);
    for part in request.messages.iter().flat_map(|message| &message.content) {
        if let ContentPart::Other(value) = part {
            let is_document = value["type"] == "file";
            documents |= is_document;
            images |= !is_document;
        }
    }
    let form = request.response_format.as_ref().and_then(|format| format["type"].as_str());
    let (json, schema) = (form == Some("json_object"), !matches!(form, None | Some("text" | "json_object")));
    let wanted = [
        (!request.tools.is_empty(), Capability::Tools),
        (images, Capability::Images),
        (documents, Capability::Documents),
        (json, Capability::Json),
        (schema, Capability::Schema),
        (penalties(request), Capability::Penalties),
        (request.logprobs.is_some(), Capability::Logprobs),
    ];
    let capabilities = wanted.into_iter().filter_map(|(needed, what)| needed.then_some(what)).collect();
    let service = match request.kind {
        CompletionKind::Chat => Service::Chat,
        CompletionKind::Text => Service::Completions,
    };
    let choice = request.tool_choice.as_ref();
    let forces_tools = choice.is_some_and(|choice| {
        let mode = choice.pointer("/allowed_tools/mode").unwrap_or(choice);
        mode != "auto" && mode != "none"
    });
    let members = request.unknown_members.keys().map(|name| name.as_str().into());
    let members = members.chain(members_of_messages(request)).collect();
    let shapes_answer = json
        || schema
        || request.unknown_members.keys().any(|name| MemberPhase::of(name) == MemberPhase::Answer);
    Needs { service, capabilities, forces_tools, cache_ttl: request.cache_ttl(), members, shapes_answer }
}

/// The members of messages that have no meaning here, by their paths.
fn members_of_messages(request: &Request) -> impl Iterator<Item = Arc<str>> {
    let messages = request.messages.iter().enumerate();
    messages.flat_map(|(at, message)| {
        message.unknown_members.keys().map(move |name| format!("messages[{at}].{name}").into())
    })
}

/// The caller's member that asks for what `word` stands for.
pub(crate) fn member(request: &Request, word: &str) -> &'static str {
    let members = &request.budget.members;
    let is = |capability: Capability| capability.as_str() == word;
    if is(Capability::Json) || is(Capability::Schema) {
        members.response_format
    } else if is(Capability::Images) || is(Capability::Documents) {
        members.prompt
    } else if is(Capability::Penalties) {
        penalty(request).unwrap_or("model")
    } else if is(Capability::Logprobs) {
        members.logprobs
    } else if request.tools.is_empty() {
        "model"
    } else if is(Capability::Tools) {
        "tools"
    } else {
        // Tools that are forced on a model whose thinking is limited.
        "tool_choice"
    }
}

/// A failure as the caller is to see it: where the model cannot do what was asked for, with the member that asks.
pub(crate) fn failed(request: &Request, failure: Failure) -> RequestRefusal {
    match failure.unsupported {
        Some(feature) => {
            RequestRefusal::Incapable { member: asking(request, feature), failure: failure.into() }
        }
        None => RequestRefusal::Failed(failure),
    }
}

/// The caller's member that asks for it; where none does, it is the model that is to be another.
fn asking(request: &Request, feature: UnsupportedFeature) -> &'static str {
    let (budget, members) = (&request.budget, &request.budget.members);
    match feature {
        UnsupportedFeature::Prompt => members.prompt,
        UnsupportedFeature::Thinking if budget.thinking.is_some() => members.thinking,
        UnsupportedFeature::Thinking if budget.reasoning_effort.is_some() => members.reasoning_effort,
        UnsupportedFeature::Form => members.response_format,
        UnsupportedFeature::Tools => "tools",
        UnsupportedFeature::Choice => "tool_choice",
        UnsupportedFeature::Penalties => penalty(request).unwrap_or("model"),
        UnsupportedFeature::Logprobs => members.logprobs,
        UnsupportedFeature::Answers => "n",
        UnsupportedFeature::Service | UnsupportedFeature::Thinking => "model",
    }
}

/// A penalty of zero and an empty bias change nothing.
fn penalties(request: &Request) -> bool {
    penalty(request).is_some()
}

/// The member that asks for one: a bias before others, since those may be left out.
fn penalty(request: &Request) -> Option<&'static str> {
    let asks = |value: &Value| match value {
        Value::Object(bias) => !bias.is_empty(),
        value => value.as_f64().is_some_and(|number| number != 0.0),
    };
    let mut names = ["logit_bias", "presence_penalty", "frequency_penalty"].into_iter();
    names.find(|name| request.extra.get(*name).is_some_and(asks))
}
