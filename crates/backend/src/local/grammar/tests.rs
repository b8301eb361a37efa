//! What texts a grammar lets pass, with the real tokens of the embedded model: nearly every byte is one.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{AnswerForm, GrammarCompiler};
use crate::{Fault, UnsupportedFeature};
use stint_engine::{TokenConstraint, TokenSet};
use stint_gguf::Gguf;
use stint_prompt::tool_calls::ToolCallSyntax;
use stint_prompt::{PromptFormat, Vocabulary};
use stint_types::chat::{Message, Request, Role, Tool};

struct GrammarWorld {
    format: Arc<PromptFormat>,
    vocab: u32,
    compiler: GrammarCompiler,
}

fn world() -> GrammarWorld {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("models/reasoner.gguf");
    let vocabulary = Vocabulary::from_gguf(&Gguf::open(&path).unwrap()).unwrap();
    let format = Arc::new(PromptFormat::new(&vocabulary, "<think>", "</think>").unwrap());
    let vocab = u32::try_from(vocabulary.tokens.len()).unwrap();
    GrammarWorld { compiler: GrammarCompiler::new(format.clone(), vocab), format, vocab }
}

fn schema(schema: &Value) -> Request {
    let named = json!({ "name": "it", "strict": true, "schema": schema });
    let form = json!({ "type": "json_schema", "json_schema": named });
    Request { response_format: Some(form), ..Request::new("m", vec![Message::text(Role::User, "?")]) }
}

/// With a tool that looks up a city, and one that takes nothing.
fn tools(choice: &str, strict: bool) -> Request {
    let city = json!({ "type": "object", "properties": { "city": { "enum": ["Rome", "Bonn"] } },
        "required": ["city"], "additionalProperties": false });
    let none = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let tool = |name: &str, parameters: &Value| {
        let function = json!({ "name": name, "parameters": parameters, "strict": strict });
        Tool::new(name, json!({ "type": "function", "function": function }))
    };
    Request {
        tools: vec![tool("look", &city), tool("now", &none)],
        tool_choice: Some(json!(choice)),
        ..Request::new("m", vec![Message::text(Role::User, "?")])
    }
}

impl GrammarWorld {
    fn matcher(&self, request: &Request, syntax: ToolCallSyntax) -> Box<dyn TokenConstraint> {
        let form = AnswerForm::of(request, Some(syntax)).unwrap().expect("a form");
        Box::new(self.compiler.make_now(form).unwrap())
    }

    /// How much of a text passes, and whether it may end there.
    fn walk(&self, matcher: &mut dyn TokenConstraint, text: &str) -> (String, bool) {
        let mut passed = self.format.detokenizer();
        let mut said = String::new();
        for id in self.format.encode(text).unwrap() {
            let mut allowed = TokenSet::empty(self.vocab);
            matcher.allow_next(&mut allowed).unwrap();
            if !allowed.contains(id) {
                break;
            }
            matcher.accept(id).unwrap();
            said.push_str(&passed.push(id));
        }
        let may_end = matcher.may_end().unwrap();
        (said, may_end)
    }

    fn check(&self, request: &Request, syntax: ToolCallSyntax, text: &str, passes: &str, may_end: bool) {
        let mut matcher = self.matcher(request, syntax);
        assert_eq!(self.walk(&mut *matcher, text), (passes.to_owned(), may_end), "{text}");
    }
}

const HERMES: ToolCallSyntax = ToolCallSyntax::Hermes;

#[test]
fn json_passes_that_fits_its_schema_and_none_that_does_not() {
    let world = world();
    let request = schema(&json!({ "type": "object", "additionalProperties": false, "required": ["n"],
        "properties": { "n": { "type": "integer", "minimum": 0, "maximum": 99 }, "é": { "enum": ["日本", "x"] } } }));
    let check = |text: &str, passes: &str, may_end| world.check(&request, HERMES, text, passes, may_end);
    check(r#"{"n":7}"#, r#"{"n":7}"#, true);
    check(r#"{"n": 42, "é": "日本"}"#, r#"{"n": 42, "é": "日本"}"#, true);
    check(r#"{"n":700}"#, r#"{"n":70"#, false);
    check(r#"{"n":"#, r#"{"n":"#, false);
    check(r#"{"n":7} and"#, r#"{"n":7}"#, true);
    check(r#"Sure: {"n":7}"#, "", false);
    check("{ \"n\":7}", "{ \"n\":7}", true);
    check("{  \"n\":7}", "{ ", false);
    check("{\n\"n\":7}", "{", false);
    check(r#"{"n":7,"é":"日x"}"#, r#"{"n":7,"é":"日"#, false);
}

#[test]
fn calls_pass_that_fit_what_their_tools_declare() {
    let world = world();
    let request = tools("required", false);
    let rome = "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";
    let now = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
    let two = [rome, now].join("\n");
    world.check(&request, HERMES, rome, rome, true);
    world.check(&request, HERMES, &two, &two, true);
    world.check(&request, HERMES, "I do not know.", "", false);
    let other = "<tool_call>\n{\"name\": \"list\"";
    world.check(&request, HERMES, other, "<tool_call>\n{\"name\": \"l", false);
    let mut single = request.clone();
    single.extra.insert("parallel_tool_calls".into(), false.into());
    world.check(&single, HERMES, &two, rome, true);
    let mistral =
        r#"[TOOL_CALLS][{"name": "look", "arguments": {"city": "Bonn"}}, {"name": "now", "arguments": {}}]"#;
    world.check(&request, ToolCallSyntax::Mistral, mistral, mistral, true);
    let llama = r#"{"name": "look", "parameters": {"city": "Bonn"}}"#;
    world.check(&request, ToolCallSyntax::Llama, llama, llama, true);
}

#[test]
fn with_a_form_and_tools_either_passes() {
    let world = world();
    let answer = json!({ "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"],
        "additionalProperties": false });
    let request = Request { response_format: schema(&answer).response_format, ..tools("auto", false) };
    let now = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
    for (text, passes, may_end) in
        [(r#"{"ok": true}"#, r#"{"ok": true}"#, true), (now, now, true), ("Yes.", "", false)]
    {
        world.check(&request, HERMES, text, passes, may_end);
    }
}

#[test]
fn text_around_the_calls_of_a_strict_tool_is_free_and_the_calls_are_not() {
    let world = world();
    let request = tools("auto", true);
    let rome = "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";
    let around = format!("Let me see <b>.\n{rome}\n{rome} There.");
    for text in ["2 < 3 and <tool_box>", "", rome, &around] {
        world.check(&request, HERMES, text, text, true);
    }
    let wrong = "Now: <tool_call>\n{\"name\": \"look\", \"arguments\": {\"city\": \"Oslo\"}}";
    let passes = "Now: <tool_call>\n{\"name\": \"look\", \"arguments\": {\"city\": \"";
    world.check(&request, HERMES, wrong, passes, false);
}

#[test]
fn a_call_may_be_written_on_one_line() {
    let world = world();
    let call = |city: &str| {
        format!("<tool_call>{{\"name\": \"look\", \"arguments\": {{\"city\": \"{city}\"}}}}</tool_call>")
    };
    let two = [call("Rome"), call("Bonn")].concat();
    for request in [tools("required", true), tools("auto", true)] {
        world.check(&request, HERMES, &two, &two, true);
        let passes = "<tool_call>{\"name\": \"look\", \"arguments\": {\"city\": \"";
        world.check(&request, HERMES, &call("Oslo"), passes, false);
    }
    let blank = "<tool_call>\n\n{\"name\"";
    // Two line ends are one token.
    world.check(&tools("auto", true), HERMES, blank, "<tool_call>", false);
}

#[test]
fn a_schema_that_is_none_is_refused_by_what_is_wrong_with_it() {
    let world = world();
    let refused = |request: &Request, words: &str| {
        let form = AnswerForm::of(request, Some(HERMES)).unwrap().expect("a form");
        let why = world.compiler.make_now(form).err().unwrap();
        assert!(why.contains(words), "{why}");
    };
    refused(&schema(&json!({ "type": "objekt" })), "objekt");
    refused(&schema(&json!({ "not": { "type": "string" } })), "not");
    refused(&schema(&json!({ "type": "integer", "minimum": 5, "maximum": 3 })), "nsatisfiable");
    refused(&schema(&json!({ "type": "string", "pattern": "(" })), "");
    refused(&schema(&json!({ "$ref": "#/$defs/none" })), "none");
    refused(&schema(&json!({ "$ref": "https://example.com/s.json" })), "example.com");
    let mut lenient = schema(&json!({ "type": "object", "not": {} }));
    lenient.response_format.as_mut().unwrap()["json_schema"]["strict"] = false.into();
    let form = AnswerForm::of(&lenient, None).unwrap().expect("a form");
    assert!(world.compiler.make_now(form).is_ok(), "who does not want it to the letter gets what there is");
}

/// Schemas that would grow without end if they were written out.
fn bombs() -> Vec<Value> {
    let two = |n: usize| {
        json!({ "anyOf": [{ "properties": { format!("a{n}"): { "type": "string" } } },
        { "properties": { format!("b{n}"): { "type": "integer" } } }] })
    };
    let product = json!({ "type": "object", "allOf": (0..24).map(two).collect::<Vec<_>>() });
    let doubling: serde_json::Map<_, _> = (0..40)
        .map(|n| {
            let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
            (
                format!("d{n}"),
                json!({ "type": "array", "prefixItems": [next, next], "items": false, "minItems": 2 }),
            )
        })
        .chain([("d40".to_owned(), json!({ "type": "null" }))])
        .collect();
    let mut patterns = json!({ "type": "string", "pattern": "^((a{1,200}){1,200}){1,200}$" });
    patterns["maxLength"] = 100_000.into();
    let wide: serde_json::Map<_, _> =
        (0..3000).map(|n| (format!("member{n}"), json!({ "type": "string", "maxLength": 5000 }))).collect();
    vec![
        product,
        json!({ "$ref": "#/$defs/d0", "$defs": doubling }),
        patterns,
        json!({ "type": "string", "pattern": "^(.*a.*b.*c.*d.*e.*){20}$" }),
        json!({ "type": "object", "properties": wide, "additionalProperties": false }),
        json!({ "type": "array", "minItems": 1_000_000, "items": { "type": "array", "minItems": 1_000_000 } }),
        json!({ "type": "string", "minLength": 1_000_000_000 }),
        json!({ "enum": (0..8000).map(|n| format!("{n}x{n}")).collect::<Vec<_>>() }),
        json!({ "type": "integer", "multipleOf": 7_919, "minimum": 0 }),
        json!({ "$ref": "#" }),
        json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] }),
    ]
}

/// IN-11: schemas and patterns that grow.
#[test]
fn schemas_that_would_grow_without_end_are_made_or_refused_in_bounded_time() {
    let world = world();
    for bomb in bombs() {
        let Ok(Some(form)) = AnswerForm::of(&schema(&bomb), None) else { continue };
        let Ok(mut matcher) = world.compiler.make_now(form) else { continue };
        // The first token that may come, again and again.
        for _ in 0..30 {
            let mut allowed = TokenSet::empty(world.vocab);
            if matcher.allow_next(&mut allowed).is_err() {
                break;
            }
            let Some(next) = (0..world.vocab).find(|id| allowed.contains(*id)) else { break };
            if matcher.accept(next).is_err() {
                break;
            }
        }
    }
}

/// A schema in which each part refers to the next one, which `part` puts into something.
fn chain(links: usize, part: impl Fn(Value) -> Value) -> Value {
    let link = |n: usize| (format!("d{n}"), part(json!({ "$ref": format!("#/$defs/d{}", n + 1) })));
    let last = (format!("d{links}"), json!({ "type": "null" }));
    let parts: serde_json::Map<_, _> = (0..links).map(link).chain([last]).collect();
    json!({ "$ref": "#/$defs/d0", "$defs": parts })
}

#[tokio::test]
async fn references_in_references_do_not_end_the_process() {
    let world = world();
    let list = |inner: Value| json!({ "type": "array", "items": inner });
    let object = |inner: Value| json!({ "type": "object", "properties": { "a": inner }, "required": ["a"] });
    let often = |word: &'static str| {
        move |inner: Value| {
            (0..29).fold(inner, |inner, _| match word {
                "items" => json!({ word: inner }),
                _ => json!({ word: [inner] }),
            })
        }
    };
    let deepest = ["items", "anyOf", "allOf", "prefixItems"].map(|word| chain(225, often(word)));
    let plain = [chain(3500, |inner| inner), chain(2100, list), chain(1250, object)];
    for schema in plain.iter().chain(&deepest).map(schema) {
        let form = AnswerForm::of(&schema, None).unwrap().unwrap();
        // Whether it is made or refused.
        drop(world.compiler.compile(form, None).await);
    }
}

#[test]
fn ranges_of_numbers_are_kept_at_their_ends_and_constants_told_apart() {
    let world = world();
    let check = |range: Value, text: &str, passes: bool| {
        let mut matcher = world.matcher(&schema(&range), HERMES);
        let (said, may_end) = world.walk(&mut *matcher, text);
        assert_eq!(said == text && may_end, passes, "{text} in {range}");
    };
    let cases = json!({ "oneOf": [{ "const": 1 }, { "const": 2 }] });
    check(cases.clone(), "2", true);
    check(cases, "3", false);
    let whole = json!({ "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX });
    check(whole.clone(), "-9007199254740991", true);
    check(whole, "9223372036854775807", false);
    check(json!({ "type": "integer", "minimum": -2e19, "maximum": 0 }), "-12", true);
    check(json!({ "type": "number", "minimum": 0, "maximum": 1e20 }), "12.5", true);
    let above = json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5 });
    check(above.clone(), "0", false);
    check(above.clone(), "0.25", true);
    check(above, "0.5", false);
    let below = json!({ "type": "number", "minimum": -0.5, "exclusiveMaximum": 0 });
    check(below.clone(), "-0", false);
    check(below, "-0.25", true);
    let none = schema(&json!({ "type": "integer", "minimum": -2e19, "maximum": -1e19 }));
    let failure = AnswerForm::of(&none, None).err().unwrap();
    assert_eq!((failure.fault, failure.unsupported), (Fault::Caller, Some(UnsupportedFeature::Form)));
}

#[tokio::test]
async fn what_cannot_be_made_names_the_member_that_asks_for_it() {
    let world = world();
    let form = AnswerForm::of(&schema(&json!({ "type": "objekt" })), None).unwrap().unwrap();
    let failure = world.compiler.compile(form, None).await.err().unwrap();
    assert_eq!(
        (failure.fault, failure.unsent, failure.unsupported),
        (Fault::Caller, true, Some(UnsupportedFeature::Form))
    );
}
