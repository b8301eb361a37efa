use proptest::prelude::*;
use serde_json::json;

use super::*;

/// What is declared. Llama's calls are of declared tools alone.
fn tools(syntax: ToolCallSyntax) -> Vec<Tool> {
    let properties = json!({"q": {"type": "string"}, "count": {"type": "integer"}});
    let declaration = json!({"function": {"name": "search", "parameters": {"properties": properties}}});
    let more: &[&str] = if syntax == ToolCallSyntax::Llama { &["f", "g"] } else { &[] };
    let more = more.iter().map(|name| Tool::new(*name, json!({"function": {"name": name}})));
    std::iter::once(Tool::new("search", declaration)).chain(more).collect()
}

/// The text and the calls, as `name(arguments)`.
fn read(syntax: ToolCallSyntax, pieces: &[&str]) -> (String, Vec<String>) {
    let mut calls = ToolCallParser::new(syntax, "call_7").with_tools(&tools(syntax));
    let mut said: Vec<AnswerSegment> = pieces.iter().flat_map(|piece| calls.push(piece)).collect();
    said.extend(calls.finish());
    let (mut text, mut made) = (String::new(), Vec::new());
    for part in said {
        match part {
            AnswerSegment::Text(more) => text.push_str(&more),
            AnswerSegment::Call(call) => {
                assert_eq!(call.id, Some(format!("call_7_{}", made.len())));
                made.push(format!("{}({})", call.name.unwrap(), call.arguments));
            }
        }
    }
    (text, made)
}

fn check(syntax: ToolCallSyntax, whole: &str, text: &str, calls: &[&str]) {
    assert_eq!(
        read(syntax, &[whole]),
        (text.to_owned(), calls.iter().map(ToString::to_string).collect()),
        "{whole}"
    );
    let bytes: Vec<&str> = whole.split_inclusive(|_| true).collect();
    assert_eq!(read(syntax, &bytes), read(syntax, &[whole]), "{whole}, letter by letter");
}

#[test]
fn calls_between_tags_are_read_out_of_the_text_around_them() {
    let one = r#"<tool_call>
{"name": "search", "arguments": {"q": "é }"}}
</tool_call>"#;
    check(ToolCallSyntax::Hermes, one, "", &[r#"search({"q":"é }"})"#]);
    let two = format!("Let me look.\n{one}\n{one}");
    check(
        ToolCallSyntax::Hermes,
        &two,
        "Let me look.",
        &[r#"search({"q":"é }"})"#, r#"search({"q":"é }"})"#],
    );
    check(ToolCallSyntax::Hermes, r#"<tool_call>{"name": "now"}</tool_call>"#, "", &["now({})"]);
    let text = r#"<tool_call>{"name": "f", "arguments": "{\"a\": 1}"}</tool_call>"#;
    check(ToolCallSyntax::Hermes, text, "", &[r#"f({"a": 1})"#]);
}

#[test]
fn what_is_no_call_is_text_and_what_broke_off_is_left_out() {
    check(
        ToolCallSyntax::Hermes,
        "a <tool_call>what?</tool_call> b",
        "a <tool_call>what?</tool_call> b",
        &[],
    );
    check(ToolCallSyntax::Hermes, "1 < 2 <tool", "1 < 2 <tool", &[]);
    check(ToolCallSyntax::Hermes, r#"a <tool_call>{"name": "f", "argu"#, "a", &[]);
    check(ToolCallSyntax::Llama, r#"{"answer": 51}"#, r#"{"answer": 51}"#, &[]);
    check(ToolCallSyntax::Llama, r#"{"name": "f", "parameters": {"a""#, "", &[]);
    check(
        ToolCallSyntax::Llama,
        r#"It is {"name": "f", "parameters": {}}"#,
        r#"It is {"name": "f", "parameters": {}}"#,
        &[],
    );
    check(ToolCallSyntax::Mistral, r#"[TOOL_CALLS][{"name": "f"#, "", &[]);
}

/// The text of an answer that a limit ended, whole and letter by letter.
fn check_cut(syntax: ToolCallSyntax, whole: &str, text: &str) {
    let letters: Vec<&str> = whole.split_inclusive(|_| true).collect();
    for pieces in [&[whole][..], &letters] {
        let mut calls = ToolCallParser::new(syntax, "call_7");
        let mut segments: Vec<AnswerSegment> = pieces.iter().flat_map(|piece| calls.push(piece)).collect();
        segments.extend(calls.finish_cut());
        let said: String = segments
            .into_iter()
            .map(|segment| match segment {
                AnswerSegment::Text(text) => text,
                AnswerSegment::Call(call) => call.name.unwrap_or_default(),
            })
            .collect();
        assert_eq!(said, text, "{whole}");
    }
}

#[test]
fn an_answer_in_json_is_no_call_of_llamas_unless_it_names_a_declared_tool_and_its_arguments() {
    for answer in [
        r#"{"name": "Alice", "age": 30}"#,
        r#"{"name": "Alice", "parameters": {}}"#,
        r#"{"name": "search", "age": 30}"#,
        r#"{"name": "f", "parameters": {}}; {"name": "Alice"}"#,
        r#"{"name": "Alice", "ag"#,
        r#"{"name": "Al"#,
        r#"{"names": ["f"#,
    ] {
        check(ToolCallSyntax::Llama, answer, answer, &[]);
    }
    check(ToolCallSyntax::Llama, r#"{"name": "search", "arguments": {"q": 1}}"#, "", &[r#"search({"q":1})"#]);
    for cut in [r#"{"name": "sea"#, r#"{"name":"#] {
        check(ToolCallSyntax::Llama, cut, "", &[]);
    }
    check(ToolCallSyntax::Llama, r#"{"name": "f", "parameters": {}}; {"name": "g", "#, "", &["f({})"]);
}

#[test]
fn the_end_of_an_answer_may_end_a_call_too() {
    let json = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}";
    let function = "<tool_call>\n<function=search>\n<parameter=count>7</parameter>\n</function>";
    for end in ["", "\n", "\n</tool_", "</tool_call>"] {
        check(ToolCallSyntax::Hermes, &format!("So: {json}{end}"), "So:", &["f({})"]);
        check(ToolCallSyntax::Coder, &format!("So: {function}{end}"), "So:", &[r#"search({"count":7})"#]);
    }
    check_cut(ToolCallSyntax::Hermes, json, "f");
    // What is about calls is no call.
    for syntax in [ToolCallSyntax::Hermes, ToolCallSyntax::Coder] {
        let about = "Qwen opens a call with <tool_call> and closes it.";
        check(syntax, about, about, &[]);
        check(syntax, "It is <tool_call>", "It is <tool_call>", &[]);
        check_cut(syntax, about, about);
        check_cut(syntax, "It is <tool_call>\n", "It is");
    }
    let bare = "Write <function=search>";
    check(ToolCallSyntax::Coder, bare, bare, &[]);
    check(ToolCallSyntax::Coder, "a <tool_call>\n<func", "a", &[]);
}

#[test]
fn an_end_tag_inside_an_argument_ends_no_call() {
    let quoted = r#"<tool_call>{"name": "f", "arguments": {"a": "x\"</tool_call>{", "b": "</tool_call>"}}</tool_call> So."#;
    let call = r#"f({"a":"x\"</tool_call>{","b":"</tool_call>"})"#;
    check(ToolCallSyntax::Hermes, quoted, " So.", &[call]);
    // A brace too few spoils no call but its own.
    let broken = r#"<tool_call>{"name": "f", "arguments": {}</tool_call>"#;
    let next = r#"<tool_call>{"name": "g"}</tool_call>"#;
    check(ToolCallSyntax::Hermes, &format!("{broken}{next}"), broken, &["g({})"]);
    let open = "<tool_call>\n{\"name\": \"f\", \"arguments\": \"{}}\n</tool_call>";
    check(ToolCallSyntax::Hermes, &format!("{open}{next}"), open, &["g({})"]);
    check(ToolCallSyntax::Hermes, &format!("{open} So."), &format!("{open} So."), &[]);
}

#[test]
fn a_tag_that_a_limit_cuts_is_no_part_of_the_answer() {
    check_cut(ToolCallSyntax::Hermes, "Let me see.\n<tool_", "Let me see.");
    check_cut(ToolCallSyntax::Hermes, "<tool_call", "");
    check_cut(ToolCallSyntax::Mistral, "Sure. [TOOL", "Sure.");
    check_cut(ToolCallSyntax::Mistral, "Sure. [TOOL_CALLS]", "Sure.");
    check_cut(ToolCallSyntax::Mistral, "Sure. [TOOL_CALLS]now", "Sure.");
    check_cut(ToolCallSyntax::Mistral, "Sure. [TOOL_CALLS]now[ARGS]", "Sure.");
    check_cut(ToolCallSyntax::DeepSeek, "I look.<｜tool▁", "I look.");
    check_cut(ToolCallSyntax::Harmony, "Well.<|channel|>comm", "Well.");
    check_cut(ToolCallSyntax::Hermes, r#"a <tool_call>{"name": "f", "argu"#, "a");
    check_cut(ToolCallSyntax::Hermes, "<tool_call>{\"name\": \"f\"}</tool_call>\n<tool_", "f");
    // What is no tag stays, and so does a single letter.
    for text in ["1 <", "a <table", "b <tool_calls", "c\n"] {
        check_cut(ToolCallSyntax::Hermes, text, text);
    }
}

#[test]
fn a_limit_that_cuts_the_second_call_leaves_the_first_one() {
    let check_all = |syntax, begun: &str, cuts: &[&str]| {
        for cut in cuts {
            check_cut(syntax, &format!("{begun}{cut}"), "f");
        }
    };
    let llama = r#"{"name": "f", "parameters": {}}"#;
    let cuts = ["", ";", "; {", r#"; {"na"#, r#"; {"name": "g", "parameters": {"a"#];
    check_all(ToolCallSyntax::Llama, llama, &cuts);
    let list = r#"[TOOL_CALLS][{"name": "f", "arguments": {}}"#;
    check_all(ToolCallSyntax::Mistral, list, &["", ",", ", {", r#", {"name": "g", "arguments": {"a"#]);
    let begun = r#"[TOOL_CALLS]g[ARGS]{"b"#;
    let cuts = ["", "[TOOL", "[TOOL_CALLS]", "[TOOL_CALLS]g", "[TOOL_CALLS]g[ARGS]", begun];
    check_all(ToolCallSyntax::Mistral, r#"[TOOL_CALLS]f[ARGS]{"a": 1}"#, &cuts);
    check_all(ToolCallSyntax::Mistral, r#"[TOOL_CALLS]f{"a": 1}"#, &["[TOOL_CALLS]g", r#"[TOOL_CALLS]g{"b"#]);
    check_all(ToolCallSyntax::Mistral, "[TOOL_CALLS]f[ARGS]", &["[TOOL_CALLS]g", "[TOOL_CALLS]g[ARGS]"]);
    let between = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜>";
    check_all(ToolCallSyntax::DeepSeek, between, &["", "<｜tool▁call▁begin｜>g<｜tool▁sep｜>{"]);
    let function = "<tool_call><function=f></function>";
    check_all(ToolCallSyntax::Coder, function, &["", "\n<function=g><param"]);
}

#[test]
fn very_many_calls_are_read_at_once() {
    let began = std::time::Instant::now();
    let mut parser = ToolCallParser::new(ToolCallSyntax::Mistral, "id");
    let said = parser.push(&"[TOOL_CALLS]f{}".repeat(200_000));
    assert_eq!((said.len(), parser.finish().len()), (0, 200_000));
    // 1 s without optimisation; minutes where for each call the rest is searched for the tags that it has not.
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}

#[test]
fn families_without_an_end_tag_call_to_the_end() {
    let llama = r#"{"name": "f", "parameters": {"a": 1}}; {"name": "g", "parameters": {}}"#;
    check(ToolCallSyntax::Llama, llama, "", &[r#"f({"a":1})"#, "g({})"]);
    let mistral =
        r#"Sure. [TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]"#;
    check(ToolCallSyntax::Mistral, mistral, "Sure.", &[r#"f({"a":1})"#, "g({})"]);
}

#[test]
fn later_mistrals_put_a_tag_before_each_call_and_one_before_its_arguments() {
    let two = r#"Sure. [TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[CALL_ID]k3J9x2Qa1[ARGS]{}"#;
    check(ToolCallSyntax::Mistral, two, "Sure.", &[r#"f({"a": 1})"#, "g({})"]);
    check(ToolCallSyntax::Mistral, r#"[TOOL_CALLS]f{"a": "[ARGS"}"#, "", &[r#"f({"a": "[ARGS"})"#]);
    let own = r#"[TOOL_CALLS]f[ARGS]{"a": "[TOOL_CALLS]"}[TOOL_CALLS]g[ARGS]{}"#;
    check(ToolCallSyntax::Mistral, own, "", &[r#"f({"a": "[TOOL_CALLS]"})"#, "g({})"]);
    check(ToolCallSyntax::Mistral, r#"a [TOOL_CALLS]f[ARGS]{"a": "#, "a", &[]);
    for none in [
        "The tag [TOOL_CALLS] comes before {1}.",
        "The tag [TOOL_CALLS] comes before [ARGS].",
        "[TOOL_CALLS]f[X]{}",
        "[TOOL_CALLS]f",
    ] {
        check(ToolCallSyntax::Mistral, none, none, &[]);
    }
}

#[test]
fn later_mistrals_write_no_arguments_where_there_are_none() {
    check(ToolCallSyntax::Mistral, "[TOOL_CALLS]now[ARGS]", "", &["now({})"]);
    let two = r#"[TOOL_CALLS]f[ARGS][TOOL_CALLS]g[ARGS]{"a":1}"#;
    check(ToolCallSyntax::Mistral, two, "", &["f({})", r#"g({"a":1})"#]);
    let id = "[TOOL_CALLS]f[CALL_ID]k3J9x2Qa1[ARGS]\n[TOOL_CALLS]g[ARGS] ";
    check(ToolCallSyntax::Mistral, id, "", &["f({})", "g({})"]);
}

#[test]
fn coders_write_each_argument_between_tags_of_its_own() {
    let one = "<tool_call>\n<function=search>\n<parameter=q>\n7 <b>\n\n\"é\"\n</parameter>\n<parameter=count>\n7\n\
               </parameter>\n</function>\n</tool_call>";
    check(ToolCallSyntax::Coder, one, "", &[r#"search({"q":"7 <b>\n\n\"é\"","count":7})"#]);
    let texts = "<tool_call><function=search><parameter=q>7</parameter></function></tool_call>";
    check(ToolCallSyntax::Coder, texts, "", &[r#"search({"q":"7"})"#]);
    let guessed = "So:\n\n<tool_call>\n<function=f>\n<parameter=a>True</parameter>\n<parameter=b>[1, \"x\"]</parameter>\n\
                   <parameter=c>a, b</parameter><parameter=d>None</parameter>\n</function>\n</tool_call>\n";
    check(ToolCallSyntax::Coder, guessed, "So:", &[r#"f({"a":true,"b":[1,"x"],"c":"a, b","d":null})"#]);
    check(ToolCallSyntax::Coder, "<tool_call><function=now></function></tool_call>", "", &["now({})"]);
    check(ToolCallSyntax::Coder, "a <tool_call><function=f><parameter=a>1</param", "a", &[]);
    let none = "a <tool_call><function=f>1</function></tool_call> b";
    check(ToolCallSyntax::Coder, none, none, &[]);
}

#[test]
fn an_argument_that_may_be_a_text_is_one_unless_it_is_null() {
    let read = |schema: serde_json::Value, value: &str| {
        let parameters = json!({"properties": {"p": schema}});
        let tool = Tool::new("f", json!({"function": {"name": "f", "parameters": parameters}}));
        let mut calls = ToolCallParser::new(ToolCallSyntax::Coder, "call").with_tools(&[tool]);
        let text = format!("<tool_call><function=f><parameter=p>{value}</parameter></function></tool_call>");
        match &calls.push(&text)[..] {
            [AnswerSegment::Call(call)] => call.arguments.clone(),
            other => panic!("{other:?}"),
        }
    };
    let nullable = [
        json!({"type": ["string", "null"]}),
        json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        json!({"oneOf": [{"enum": ["7", "8"]}, {"type": "null"}]}),
        json!({"enum": ["7", null]}),
        json!({"type": "string", "nullable": true}),
    ];
    for schema in nullable {
        assert_eq!(read(schema.clone(), "7"), r#"{"p":"7"}"#, "{schema}");
        assert_eq!(read(schema.clone(), "null"), r#"{"p":null}"#, "{schema}");
        assert_eq!(read(schema.clone(), "None"), r#"{"p":null}"#, "{schema}");
    }
    for schema in [json!({"enum": ["7"]}), json!({"type": "string"}), json!({"type": ["string", "integer"]})]
    {
        assert_eq!(read(schema.clone(), "7"), r#"{"p":"7"}"#, "{schema}");
        assert_eq!(read(schema.clone(), "null"), r#"{"p":"null"}"#, "{schema}");
    }
    for schema in [json!({}), json!({"type": "integer"}), json!({"enum": [7, "8"]})] {
        assert_eq!(read(schema.clone(), "7"), r#"{"p":7}"#, "{schema}");
    }
}

#[test]
fn coders_may_forget_the_first_tag_of_a_call() {
    let bare = "<function=search>\n<parameter=count>\n7\n</parameter>\n</function>";
    let call = r#"search({"count":7})"#;
    check(ToolCallSyntax::Coder, bare, "", &[call]);
    check(ToolCallSyntax::Coder, &format!("I look.\n\n{bare}\n</tool_call>"), "I look.", &[call]);
    check(ToolCallSyntax::Coder, &format!("{bare}\n{bare}\n</tool_call>\n"), "", &[call, call]);
    check(
        ToolCallSyntax::Coder,
        &format!("{bare}\n</tool_call>\n<tool_call>\n{bare}\n</tool_call>"),
        "",
        &[call, call],
    );
    check(ToolCallSyntax::Coder, &format!("{bare} So."), " So.", &[call]);
    check(ToolCallSyntax::Coder, &format!("{bare}\n</tool"), "", &[call]);
    check(ToolCallSyntax::Coder, "a <function=search><parameter=q>1</param", "a", &[]);
    // Nobody can call what there is not.
    let other = "Write <function=other></function> for that";
    check(ToolCallSyntax::Coder, other, other, &[]);
    // Nor does a tag belong to what is no call.
    let broken = "So <function=search><parameter>1</parameter></function>\n</tool_call> then";
    check(ToolCallSyntax::Coder, broken, broken, &[]);
}

#[test]
fn deepseeks_calls_stand_between_tokens_of_their_own() {
    let fenced = "I look.\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n{\"q\": \"é\"}\n```\
                  <｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜>\
                  <｜tool▁calls▁end｜>";
    check(ToolCallSyntax::DeepSeek, fenced, "I look.", &[r#"search({"q": "é"})"#, "now({})"]);
    let plain = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>search<｜tool▁sep｜>{\"q\":\"```json\"}<｜tool▁call▁end｜>";
    check(ToolCallSyntax::DeepSeek, plain, "", &[r#"search({"q":"```json"})"#]);
    check(
        ToolCallSyntax::DeepSeek,
        &format!("{plain}<｜tool▁calls▁end｜>"),
        "",
        &[r#"search({"q":"```json"})"#],
    );
    check(ToolCallSyntax::DeepSeek, "a <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>sea", "a", &[]);
}

#[test]
fn in_harmony_a_call_is_a_message_to_a_function() {
    let call = "<|channel|>commentary to=functions.search <|constrain|>json<|message|>{\"q\": \"a\"}";
    check(ToolCallSyntax::Harmony, call, "", &[r#"search({"q": "a"})"#]);
    check(
        ToolCallSyntax::Harmony,
        &format!("Well. <|start|>assistant{call}<|call|>"),
        "Well.",
        &[r#"search({"q": "a"})"#],
    );
    let other = "<|start|>assistant to=functions.now<|channel|>commentary json<|message|>{}<|call|>";
    check(ToolCallSyntax::Harmony, other, "", &["now({})"]);
    check(ToolCallSyntax::Harmony, &call[..call.len() - 3], "", &[]);
    let elsewhere = "<|channel|>commentary to=user<|message|>hello<|call|>";
    check(ToolCallSyntax::Harmony, elsewhere, elsewhere, &[]);
}

/// Searched from its beginning with each piece it would take minutes.
#[test]
fn a_call_of_very_many_pieces_takes_no_longer_than_one_of_few() {
    let long = "<tool_call>".to_owned() + &"x".repeat(16 << 20);
    let pieces: Vec<&str> =
        long.as_bytes().chunks(32).map(|piece| std::str::from_utf8(piece).unwrap()).collect();
    assert_eq!(read(ToolCallSyntax::Hermes, &pieces), (long.clone(), Vec::new()));
}

#[test]
fn blank_without_end_is_not_held_back() {
    let call = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
    let text = format!("Well.{}{call}{}", " ".repeat(BLANK_HELD_MAX + 2), " ".repeat(BLANK_HELD_MAX + 1));
    let pieces: Vec<&str> =
        text.as_bytes().chunks(1).map(|byte| std::str::from_utf8(byte).unwrap()).collect();
    let expected = ("Well.   ".to_owned(), vec!["f({})".to_owned()]);
    assert_eq!(read(ToolCallSyntax::Hermes, &pieces), expected);
    assert_eq!(read(ToolCallSyntax::Hermes, &[&text]), expected);
}

#[test]
fn a_template_shows_which_family_it_is_of() {
    let of = ToolCallSyntax::of_template;
    assert_eq!(of("<tool_call>\\n<function=x>\\n<parameter=y>"), Some(ToolCallSyntax::Coder));
    assert_eq!(of("{{ '<tool_call>' }}"), Some(ToolCallSyntax::Hermes));
    assert_eq!(of("'<｜tool▁calls▁begin｜>'"), Some(ToolCallSyntax::DeepSeek));
    assert_eq!(of("<|channel|>commentary to=functions."), Some(ToolCallSyntax::Harmony));
    assert_eq!(of("[TOOL_CALLS]"), Some(ToolCallSyntax::Mistral));
    assert_eq!(of("<|start_header_id|> {\"name\": n, \"parameters\": p}"), Some(ToolCallSyntax::Llama));
    assert_eq!(of("<|im_start|>"), None);
}

proptest! {
    #[test]
    fn it_does_not_matter_where_the_pieces_are_cut(
        cuts in prop::collection::vec(0..200usize, 0..8),
        text in "(a|<|\\{|\\}|\"name\"|<tool_call>|</tool_call>|\\[TOOL_CALLS\\]|\\{\"name\":\"f\"\\}|é|\\s|<function=f>|</function>\
             |<parameter=a>|</parameter>|<｜tool▁calls▁begin｜>|<｜tool▁call▁begin｜>f|<｜tool▁sep｜>|<｜tool▁call▁end｜>\
             |<｜tool▁calls▁end｜>|<\\|start\\|>assistant|<\\|channel\\|>commentary|\\sto=|functions\\.f|<\\|message\\|>\
             |<\\|call\\|>){0,12}",
    syntax in prop::sample::select(vec![
        ToolCallSyntax::Hermes, ToolCallSyntax::Mistral, ToolCallSyntax::Llama, ToolCallSyntax::Coder, ToolCallSyntax::DeepSeek, ToolCallSyntax::Harmony,
    ]),
) {
        let mut at: Vec<usize> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut)).collect();
        at.extend([0, text.len()]);
        at.sort_unstable();
        let pieces: Vec<&str> = at.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
        prop_assert_eq!(read(syntax, &pieces), read(syntax, &[&text]));
    }
}
