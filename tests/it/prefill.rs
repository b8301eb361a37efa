//! Answers whose beginning the caller has written, as `DeepSeek`, Mistral, vLLM and Claude have them.

use serde_json::{Value, json};

use crate::harness::faultup::rig::{Rig, question};
use crate::harness::faultup::script::{DONE, Step, ends, event, says, stream, used};
use stint_backend::remote::openai::Dialect;

/// A gateway in front of an upstream of this dialect, which goes on with " 3.".
async fn in_front_of(dialect: Dialect) -> Rig {
    let said = event(&says(" 3.")) + &event(&ends("stop")) + &event(&used(9, 3)) + DONE;
    Rig::with(vec![stream().send(said).then(Step::Close)], |knobs| *knobs.dialect = dialect.clone()).await
}

/// A question, and how its answer is to begin.
fn begun(mark: &Value) -> Value {
    let mut asked = question(false);
    let mut last = json!({ "role": "assistant", "content": "It is" });
    last.as_object_mut().unwrap().extend(mark.as_object().cloned().unwrap());
    asked["messages"].as_array_mut().unwrap().push(last);
    asked
}

#[tokio::test]
async fn an_answer_goes_on_from_where_its_caller_has_begun_it() {
    for (dialect, sent_as, mark) in [
        (Dialect::deepseek(), Some("prefix"), json!({ "prefix": true })),
        (Dialect::mistral(), Some("prefix"), json!({ "partial": true })),
        (Dialect::dashscope(), Some("partial"), json!({ "prefix": true })),
        (Dialect::openrouter(), None, json!({ "prefix": true })),
    ] {
        let rig = in_front_of(dialect).await;
        let answer = rig.world.ask("sk-key", &begun(&mark)).await.good();
        assert_eq!(answer["choices"][0]["message"]["content"], " 3.", "the blank belongs to it: {answer}");
        let sent = rig.upstream.log()[0].body.clone();
        let last = sent["messages"].as_array().unwrap().last().unwrap();
        assert_eq!((&last["role"], &last["content"]), (&json!("assistant"), &json!("It is")), "{sent}");
        let marked = ["prefix", "partial"].into_iter().find(|name| last[name] == true);
        assert_eq!(marked, sent_as, "{sent}");
        assert_eq!(answer["budget"]["thinking"]["budget"], 0, "{answer}");
    }
    let rig = in_front_of(Dialect::sglang()).await;
    let mut asked = begun(&json!({}));
    (asked["continue_final_message"], asked["add_generation_prompt"]) = (json!(true), json!(false));
    rig.world.ask("sk-key", &asked).await.good();
    let sent = rig.upstream.log()[0].body.clone();
    assert_eq!(
        (&sent["continue_final_message"], &sent["add_generation_prompt"]),
        (&json!(true), &json!(false))
    );
}

#[tokio::test]
async fn where_no_answer_can_be_begun_so_the_member_and_the_remedy_are_told() {
    let rig = in_front_of(Dialect::openai()).await;
    for stream in [false, true] {
        let mut asked = begun(&json!({ "prefix": true }));
        asked["stream"] = stream.into();
        let answer = rig.world.ask("sk-key", &asked).await;
        let error = answer.error();
        assert_eq!((answer.status, &error["param"]), (400, &json!("messages")), "{error}");
        assert!(error["message"].as_str().unwrap().contains("end with the user's"), "{error}");
    }
    let asked = json!({
        "model": "m", "max_tokens": 20,
        "messages": [{ "role": "user", "content": "1+2?" }, { "role": "assistant", "content": "It is" }],
    });
    let answer = rig.world.post("/v1/messages", "sk-key", &asked).await;
    assert_eq!((answer.status, &answer.error()["param"]), (400, &json!("messages")), "{}", answer.text);
    assert!(rig.upstream.log().is_empty());
}

#[tokio::test]
async fn a_mark_where_nothing_can_be_continued_is_refused_by_its_name() {
    let rig = in_front_of(Dialect::deepseek()).await;
    let mut early = begun(&json!({ "prefix": true }));
    early["messages"].as_array_mut().unwrap().push(json!({ "role": "user", "content": "Go on." }));
    let mut users = question(false);
    users["continue_final_message"] = json!(true);
    let mut both = begun(&json!({}));
    (both["continue_final_message"], both["add_generation_prompt"]) = (json!(true), json!(true));
    for (asked, param) in [
        (early, "messages[1].prefix"),
        (begun(&json!({ "prefix": "yes" })), "messages[1].prefix"),
        (users, "continue_final_message"),
        (both, "add_generation_prompt"),
    ] {
        let answer = rig.world.ask("sk-key", &asked).await;
        assert_eq!((answer.status, &answer.error()["param"]), (400, &json!(param)), "{}", answer.text);
    }
}
