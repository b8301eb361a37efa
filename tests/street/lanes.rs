//! The upstreams of the everyday prompts: one emulator for each way in which providers are called and bill.

use serde_json::Value;

use crate::harness::emulators::anthropic::Anthropic;
use crate::harness::emulators::chat::{self, Kind, Script};
use crate::harness::emulators::gemini::Gemini;
use crate::harness::emulators::responses::Responses;
use crate::harness::emulators::{self, Api, KEY, Turn};

use super::prompts::{self, Prompt};

/// How many tokens one event carries.
const BULK: u64 = 64;

/// One upstream, and the model of the gateway that it serves.
pub(super) struct Lane {
    pub(super) model: &'static str,
    /// Its part of the configuration.
    pub(super) toml: String,
    truth: Truth,
    /// The members by which its API is told a limit on the answer.
    limits: &'static [&'static str],
}

/// Who keeps the log of what was asked and billed.
enum Truth {
    Chat(chat::Emulator),
    Own(emulators::Emulator),
}

impl Lane {
    /// What it was asked, in order.
    pub(super) fn asked(&self) -> Vec<Value> {
        match &self.truth {
            Truth::Chat(emulator) => emulator.calls().into_iter().map(|call| call.body).collect(),
            Truth::Own(emulator) => emulator.asked(),
        }
    }

    /// What it bills, in tokens read and written.
    pub(super) fn billed(&self) -> (u64, u64) {
        let sum = |all: Vec<(u64, u64)>| all.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        match &self.truth {
            Truth::Chat(emulator) => {
                sum(emulator.calls().iter().map(|call| (call.prompt, call.generated())).collect())
            }
            Truth::Own(emulator) => {
                sum(emulator.bills().iter().map(|bill| (bill.prompt, bill.written)).collect())
            }
        }
    }

    /// What it refused.
    pub(super) fn refusals(&self) -> Vec<Value> {
        match &self.truth {
            Truth::Chat(emulator) => emulator.refusals(),
            Truth::Own(emulator) => emulator.refused().into_iter().map(|(_, told)| told).collect(),
        }
    }

    /// The limit on all that is written that a request states, if it states one.
    pub(super) fn limit(&self, body: &Value) -> Option<u64> {
        self.limits.iter().find_map(|name| body.pointer(name)?.as_u64())
    }
}

/// All of them.
pub(super) fn all(prompts: &[Prompt]) -> Vec<Lane> {
    let chats = "context = 200000\noutput_max = 131072\nthinking_max = 32768";
    vec![
        own(Anthropic::default(), "anthropic", "claude-sonnet-4-5", "claude-sonnet-4-5", "", &[], prompts),
        own(
            Anthropic::default(),
            "anthropic",
            "claude-adaptive",
            "claude-adaptive",
            "thinking = \"adaptive\"\nsampling = false\nthinking_max = 20000\ncontext = 200000\noutput_max = 128000\n\
             efforts = [{ word = \"low\", usual = 20 }, { word = \"medium\", usual = 100 }, { word = \"high\", usual = 4000 }]",
            &[],
            prompts,
        ),
        own(
            Gemini,
            "gemini",
            "gemini-2.5-flash",
            "gemini-2.5-flash",
            "",
            &["/generationConfig/maxOutputTokens"],
            prompts,
        ),
        own(Responses, "responses", "gpt-5-mini", "gpt-5-mini", "", &["/max_output_tokens"], prompts),
        chat(Kind::OpenAi, "openai", "gpt-5", "", prompts),
        chat(Kind::DeepSeek, "deepseek", "deepseek-reasoner", chats, prompts),
        chat(Kind::Vllm, "vllm", "qwen3-8b", chats, prompts),
        chat(Kind::LlamaCpp, "llamacpp", "qwen3-4b", chats, prompts),
    ]
}

/// A dollar for a million tokens read, four for as many written, wherever they are cached.
const PRICES: &str =
    "price_input = \"1\"\nprice_output = \"4\"\nprice_cache_read = \"1\"\nprice_cache_write = \"1\"";

fn toml(kind: &str, base: &str, model: &str, upstream: &str, more: &str) -> String {
    format!(
        "[[backend]]\nname = \"at-{model}\"\nkind = \"{kind}\"\nbase_url = \"{base}\"\napi_key_file = \"key\"\n\
         [[backend.model]]\nname = \"{model}\"\nupstream = \"{upstream}\"\n{PRICES}\n{more}\n"
    )
}

fn own(
    api: impl Api,
    kind: &str,
    model: &'static str,
    upstream: &str,
    more: &str,
    limits: &'static [&'static str],
    prompts: &[Prompt],
) -> Lane {
    let prompts = prompts.to_vec();
    let emulator = emulators::Emulator::start_by(api, move |body| {
        let prompt = prompts[prompts::number(body).expect("a known everyday prompt")];
        Turn::answers(prompt.thought, &"word ".repeat(usize::try_from(prompt.answer).unwrap()))
    });
    Lane {
        model,
        toml: toml(kind, &emulator.base, model, upstream, more),
        truth: Truth::Own(emulator),
        limits,
    }
}

fn chat(kind: Kind, word: &str, model: &'static str, more: &str, prompts: &[Prompt]) -> Lane {
    let prompts = prompts.to_vec();
    let emulator = chat::Emulator::start_by(kind, move |body| {
        // What is only rendered or tokenized is about no prompt.
        let (thinks, answers) = prompts::number(body).map_or((0, 1), |number| {
            let prompt = prompts[number];
            (prompt.thought, prompt.answer)
        });
        Script { bulk: BULK, ..Script::new(thinks, answers) }
    });
    let base = match kind {
        Kind::DeepSeek | Kind::LlamaCpp => emulator.address.clone(),
        _ => format!("{}/v1", emulator.address),
    };
    let limits = &["/max_tokens", "/max_completion_tokens", "/n_predict"];
    Lane { model, toml: toml(word, &base, model, model, more), truth: Truth::Chat(emulator), limits }
}

/// The key that they all take, for the file that the configuration names.
pub(super) fn key() -> &'static str {
    KEY
}
