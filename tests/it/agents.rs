//! Agents through the whole gateway: runs, their budgets, and what of their tool calls passes.

mod budgets;
mod crowds;
mod finding;
mod histories;
mod replicas;
mod routes;
mod shapes;
mod stores;
mod stubborn;
mod told;
mod vectors;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::{Answer, Served, Stored, World, auto, model, tenant};
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_ledger::MemoryJournal;
use stint_sessions::agent;
use stint_types::catalog::{Capability, EnforcementClass, Model};
use stint_types::chat::{Request, Role, ToolCallDelta};
use stint_types::units::{Count, Tokens};

/// A model that calls tools, and does not think.
pub(super) fn caller(name: &str) -> Model {
    Model {
        capabilities: vec![Capability::Tools],
        context: Tokens(10_000_000),
        thinking_max: Tokens::ZERO,
        ..model(name, EnforcementClass::Native)
    }
}

/// The same, of which all that an answer may take is set aside at once, however long its caller lets it be.
pub(super) fn verbose(name: &str) -> Model {
    Model { solution_max: None, stops_billing: false, ..caller(name) }
}

/// True if the model may call tools.
pub(super) fn may_call(request: &Request) -> bool {
    !request.tools.is_empty() && request.tool_choice.as_ref().is_none_or(|choice| choice != "none")
}

/// A call of `search`; the ids are those of the conversation, so equal conversations are answered alike.
pub(super) fn search(request: &Request, index: u32, arguments: &Value) -> ToolCallDelta {
    let turn = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
    ToolCallDelta {
        index,
        id: Some(format!("call_{turn}_{index}")),
        name: Some("search".into()),
        arguments: arguments.to_string(),
    }
}

/// Searches so many times at once as long as it may, then answers.
pub(super) fn play(request: &Request, calls: u32) -> ScriptedReply {
    if !may_call(request) {
        return ScriptedReply::new().answers("the answer");
    }
    let call = |play: ScriptedReply, index| {
        play.calls(search(request, index, &json!({ "q": format!("what is {index}") })))
    };
    (0..calls).fold(ScriptedReply::new(), call)
}

pub(super) fn searching(calls: u32) -> Arc<ScriptedBackend> {
    Arc::new(ScriptedBackend::each(move |call, _| play(&call.request, calls)))
}

/// A gateway with one such model, for two keys with a dollar each.
pub(super) async fn world(script: &Arc<ScriptedBackend>, settings: agent::Settings) -> World {
    let stored = Stored { agents: settings, ..Stored::alone(Arc::new(MemoryJournal::default())) };
    world_on(script, stored).await
}

pub(super) async fn world_on(script: &Arc<ScriptedBackend>, stored: Stored) -> World {
    world_by(caller("m"), script, stored).await
}

pub(super) async fn world_by(model: Model, script: &Arc<ScriptedBackend>, stored: Stored) -> World {
    let served = vec![Served::by(model, vec![script.clone()])];
    let callers = vec![tenant("acme", 1_000_000_000), tenant("other", 1_000_000_000)];
    Box::pin(World::agents(served, callers, vec![auto()], stored)).await
}

pub(super) fn tools() -> Value {
    let parameters = json!({ "type": "object", "properties": {} });
    let tool =
        |name: &str| json!({ "type": "function", "function": { "name": name, "parameters": parameters } });
    json!([tool("search"), tool("browse")])
}

/// An agent: it asks, runs the tools, and asks again with their results.
#[derive(Debug, Clone)]
pub(super) struct Agent {
    pub(super) key: &'static str,
    pub(super) messages: Vec<Value>,
    pub(super) budget: Value,
    pub(super) model: &'static str,
}

impl Agent {
    pub(super) fn new(key: &'static str, budget: &Value) -> Agent {
        let messages = vec![json!({ "role": "user", "content": "Who was it?" })];
        Agent { key, messages, budget: budget.clone(), model: "m" }
    }

    /// The same with another question, so that its history differs from others'.
    pub(super) fn about(mut self, question: &str) -> Agent {
        self.messages = vec![json!({ "role": "user", "content": question })];
        self
    }

    pub(super) fn body(&self) -> Value {
        json!({ "model": self.model, "messages": self.messages, "tools": tools(), "budget": self.budget })
    }

    pub(super) async fn ask(&self, world: &World) -> Answer {
        world.ask(self.key, &self.body()).await
    }

    /// One step: the answer, with its results taken into the conversation.
    pub(super) async fn step(&mut self, world: &World) -> Value {
        let answer = self.ask(world).await;
        self.hear(&answer)
    }

    pub(super) fn hear(&mut self, answer: &Answer) -> Value {
        let answer = answer.good();
        let message = answer["choices"][0]["message"].clone();
        self.messages.push(message.clone());
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let result = format!("result of {}", call["function"]["arguments"]);
            self.messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": result }));
        }
        answer
    }
}

/// How many tools an answer calls.
pub(super) fn calls(answer: &Value) -> usize {
    answer["choices"][0]["message"]["tool_calls"].as_array().map_or(0, Vec::len)
}

/// The run that an answer is a step of.
pub(super) fn run(answer: &Value) -> &str {
    answer["budget"]["episode"]["id"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

pub(super) fn count(count: u64) -> Count {
    Count(count)
}
