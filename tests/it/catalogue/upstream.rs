//! The provider behind a group of pairs, emulated: it takes what the provider takes, and keeps what came.

use serde_json::{Map, Value};

use crate::harness::emulators::anthropic::Anthropic;
use crate::harness::emulators::chat::{self, Kind, Script};
use crate::harness::emulators::gemini::Gemini;
use crate::harness::emulators::openai::OpenAi;
use crate::harness::emulators::responses::Responses;
use crate::harness::emulators::{Arrived, Emulator, KEY, Turn, efforts};

/// A provider.
pub(super) enum Upstream {
    Own(Emulator),
    Chat(chat::Emulator),
}

impl Upstream {
    /// The provider that serves by that kind of API at that host.
    pub(super) fn of(kind: &str, host: &str) -> Upstream {
        let turn = |_: &Value| Turn::answers(0, "so");
        let script = |body: &Value| {
            let efforts = efforts::of(body["model"].as_str().unwrap_or_default());
            // Long thoughts come at once.
            Script { efforts, bulk: 1000, ..Script::new(0, 1) }
        };
        let chat = |kind| Upstream::Chat(chat::Emulator::start_by(kind, script));
        match (kind, host) {
            ("anthropic", _) => Upstream::Own(Emulator::start_by(Anthropic::default(), turn)),
            ("gemini", _) => Upstream::Own(Emulator::start_by(Gemini, turn)),
            ("responses", _) => Upstream::Own(Emulator::start_by(Responses, turn)),
            ("openai", "api.openai.com") => Upstream::Own(Emulator::start_by(OpenAi, turn)),
            ("openai", "api.deepseek.com") | ("deepseek", _) => chat(Kind::DeepSeek),
            ("openai", "api.moonshot.ai" | "api.moonshot.cn") => chat(Kind::Moonshot),
            ("openai", _) => chat(Kind::OpenAi),
            ("mistral", _) => chat(Kind::Mistral),
            ("xai", _) => chat(Kind::Xai),
            ("sglang", _) => chat(Kind::Sglang),
            ("vllm", _) => chat(Kind::Vllm),
            ("ollama", _) => chat(Kind::Ollama),
            other => panic!("nobody emulates {other:?}"),
        }
    }

    /// Where it is, without a path.
    pub(super) fn address(&self) -> String {
        match self {
            Upstream::Own(emulator) => emulator.base.rsplit_once('/').unwrap().0.to_owned(),
            Upstream::Chat(emulator) => emulator.address.clone(),
        }
    }

    /// All that came for a model, in order.
    pub(super) fn arrived(&self, model: &str) -> Vec<Arrived> {
        let mut arrived = match self {
            Upstream::Own(emulator) => emulator.arrived(),
            Upstream::Chat(emulator) => emulator.arrived(),
        };
        // Gemini's name is in the path.
        let in_path = format!("/{model}:");
        arrived.retain(|it| it.body["model"] == model || it.path.contains(&in_path));
        arrived
    }

    /// Why it is wrong that it takes this with these members besides; nothing where it refuses it.
    pub(super) async fn takes(&self, sent: &Arrived, more: &Map<String, Value>) -> Option<String> {
        let mut body = sent.body.clone();
        body.as_object_mut()?.extend(more.clone());
        let query = if sent.path.ends_with("streamGenerateContent") { "?alt=sse" } else { "" };
        let address = format!("{}{}{query}", self.address(), sent.path);
        let asked = reqwest::Client::new()
            .post(address)
            .bearer_auth(KEY)
            .header("x-goog-api-key", KEY)
            .header("anthropic-version", "2023-06-01")
            .header("anthropic-beta", sent.betas.join(","))
            .header("content-type", "application/json")
            .body(body.to_string());
        let answer = asked.send().await.unwrap();
        let status = answer.status().as_u16();
        (status != 400)
            .then(|| format!("the emulator says {status} to {} besides", Value::Object(more.clone())))
    }
}
