use serde_json::{Value, json};

use crate::http::error::ApiError;
use crate::http::fields::Fields;
use crate::http::responses::choice::ResponsesToolChoice;
use crate::http::responses::conversation_builder::ConversationBuilder;
use crate::http::responses::parse::ResponsesRequest;
use crate::http::responses::tool_set::{ToolCallForm, flat_name};
use crate::http::responses::tools;
use stint_types::units::Count;

use super::{asked, read};

#[test]
fn tools_are_known_to_models_by_one_name_each() {
    for (space, name, known) in [
        (None, "f", "f"),
        (Some("functions"), "exec", "exec"),
        (Some("crm"), "find", "crm__find"),
        (Some("mcp__mail__"), "send", "mcp__mail__send"),
    ] {
        assert_eq!(flat_name(space, name), known);
    }
    let (one, other) = (flat_name(Some(&"s".repeat(60)), "aaaa"), flat_name(Some(&"s".repeat(60)), "bbbb"));
    assert!(one.len() == 64 && other.len() == 64 && one != other, "{one} {other}");
    let limited = format!("{}__aaaa", "s".repeat(60));
    let said = asked(&json!({ "budget": { "tool_calls": { limited: 3, "f": 2 } } }))
        .request
        .budget
        .episode_limits
        .tools;
    assert_eq!((said.each[&*one], said.each["f"], said.each.len()), (Count(3), Count(2), 2));
    let offered =
        |list: Value| tools::read(&mut Fields::from_value("", json!({ "tools": list })).unwrap())?.tools();
    let f = |name: &str, says: &str| json!({ "type": "function", "name": name, "description": says });
    let space = |tools: Value| json!({ "type": "namespace", "name": "crm", "description": "All of it.", "tools": tools });
    let tools =
        offered(json!([space(json!([f("a", "One."), f("b", "")])), f("c", ""), f("c", "Again.")])).unwrap();
    let says = |at: usize| tools[at].declaration["function"]["description"].clone();
    assert_eq!((tools.len(), says(0), says(2)), (3, json!("All of it.\n\nOne."), json!("Again.")));
    let refused = |list: Value| offered(list).expect_err("is refused").message().to_owned();
    let clash = refused(json!([space(json!([f("a", "")])), f("crm__a", "")]));
    assert!(clash.contains("is known to models as crm__a, and so is another tool"), "{clash}");
    let nested = refused(json!([space(json!([space(json!([]))]))]));
    assert!(nested.contains("tools[0].type must be function"), "{nested}");
    let web = || json!({ "type": "web_search", "external_web_access": true });
    assert_eq!(offered(json!([web(), f("c", "")])).unwrap().len(), 1);
    for kind in ["image_generation", "local_shell", "mcp"] {
        let hosted = json!({ "type": kind, "server_label": "any" });
        assert_eq!(offered(json!([f("c", ""), hosted])).unwrap().len(), 1, "{kind}");
        let alone = refused(json!([hosted]));
        assert!(alone.contains("runs at a provider and is not offered"), "{alone}");
    }
    let alone = refused(json!([web()]));
    assert!(alone.contains("runs at a provider and is not offered"), "{alone}");
    let hosted = offered(json!([{ "type": "tool_search" }, f("c", "")])).unwrap();
    assert_eq!(hosted.len(), 1, "all tools are told, so there is nothing to search for");
    let hosted = |member: &str, value: Value| {
        refused(json!([{ "type": "tool_search", "description": "Finds.", member: value }, f("c", "")]))
    };
    assert_eq!(hosted("execution", json!("clinet")), "tools[0].execution must be client or server");
    assert_eq!(hosted("limit", json!(3)), "tools[0].limit is not known here; leave it out");
    let alone = refused(json!([{ "type": "tool_search", "execution": "server" }]));
    assert!(alone.contains("runs at a provider and is not offered"), "{alone}");
    let plain = json!({ "type": "namespace", "name": "functions", "tools": [f("c", "In none.")] });
    let tools = offered(json!([f("c", ""), plain])).unwrap();
    assert_eq!((tools.len(), &tools[0].declaration["function"]["description"]), (1, &json!("In none.")));
    let forms = refused(json!([f("c", ""), { "type": "custom", "name": "c" }]));
    assert!(forms.contains("tools[1].name is known to models as c"), "{forms}");
}

/// A request whose items are read, its offer with them; and what the model is told of the choice.
fn chosen(more: &Value) -> Result<(ResponsesRequest, Option<Value>), ApiError> {
    let mut asked = read(more)?;
    let mut conversation = ConversationBuilder::new(None);
    for (at, item) in asked.input.iter().enumerate() {
        conversation.push(&format!("input[{at}]"), item)?;
    }
    asked.tool_set.merge_earlier(conversation.take_tool_set());
    let choice = asked.choice.take().map(|choice| choice.resolve(&asked.tool_set)).transpose()?;
    Ok((asked, choice))
}

#[test]
fn of_what_models_know_by_one_name_the_requests_own_wins_and_then_the_later() {
    let brought = |tools: Value| json!({ "type": "additional_tools", "role": "developer", "tools": tools });
    let f = |name: &str, says: &str| json!({ "type": "function", "name": name, "description": says });
    let space =
        json!({ "type": "namespace", "name": "functions", "tools": [f("exec", "v1"), f("look", "v1")] });
    let check = |tools: Value, expected: &[(&str, &str, ToolCallForm)]| {
        let items = json!([
            brought(json!([space])),
            brought(json!([f("find", "v1"), { "type": "custom", "name": "exec", "description": "v2" }])),
            brought(json!([f("find", "v2")])),
        ]);
        let (mut asked, _) = chosen(&json!({ "input": items, "tools": tools })).unwrap();
        let kinds = asked.tool_set.identities.clone();
        let tools = asked.tool_set.tools().unwrap();
        let seen = tools.iter().map(|tool| {
            let says = tool.declaration["function"]["description"].as_str().unwrap();
            (tool.name.as_str(), says, kinds[&tool.name].form)
        });
        assert_eq!(seen.collect::<Vec<_>>(), expected);
    };
    let (function, custom) = (ToolCallForm::Function, ToolCallForm::Custom);
    let brought = [("exec", "v2", custom), ("look", "v1", function), ("find", "v2", function)];
    check(json!([]), &brought);
    let own = [("look", "v3", function), ("exec", "v3", function), ("find", "v2", function)];
    check(json!([f("look", "v3"), f("exec", "v3")]), &own);
}

#[test]
fn a_choice_names_tools_by_their_own_names_where_those_are_enough() {
    let f = |name: &str| json!({ "type": "function", "name": name });
    let space = |name: &str, tools: Value| json!({ "type": "namespace", "name": name, "tools": tools });
    let search = json!({ "type": "tool_search", "execution": "client" });
    let brought = json!({ "type": "additional_tools", "role": "developer", "tools": [f("look")] });
    let choose = |choice: Value| {
        let tools =
            json!([space("crm", json!([f("find"), f("send")])), space("mail", json!([f("send")])), search]);
        chosen(&json!({ "input": [brought], "tools": tools, "tool_choice": choice }))
    };
    let forced = |choice: Value, name: &str| {
        let (_, told) = choose(choice).unwrap();
        assert_eq!(told, Some(json!({ "type": "function", "function": { "name": name } })));
    };
    forced(f("find"), "crm__find");
    forced(json!({ "type": "custom", "name": "send", "namespace": "mail" }), "mail__send");
    forced(json!({ "type": "function", "name": "look", "namespace": "functions" }), "look");
    forced(json!({ "type": "tool_search" }), "tool_search");
    let allow = |tools: Value| json!({ "type": "allowed_tools", "mode": "required", "tools": tools });
    let (mut asked, told) =
        choose(allow(json!([f("find"), f("look"), { "type": "tool_search" }, { "type": "web_search" }])))
            .unwrap();
    let named = |name: &str| json!({ "type": "function", "function": { "name": name } });
    let tools = ["crm__find", "look", "tool_search"].map(named);
    let list = json!({ "type": "allowed_tools", "allowed_tools": { "mode": "required", "tools": tools } });
    assert_eq!(told, Some(list));
    assert_eq!(asked.tool_set.tools().unwrap().len(), 5, "all stay declared");
    let refused = |choice: Value, says: &str| {
        let problem = choose(choice).map(|_| ()).expect_err(says);
        assert!(problem.message().starts_with(says), "{}", problem.message());
    };
    let none = super::asked(&json!({}));
    let choice = ResponsesToolChoice::Word("required".to_owned());
    let refusal = choice.resolve(&none.tool_set).expect_err("there are no tools");
    assert!(refusal.message().starts_with("tool_choice is required, and no tools are declared"));
    refused(f("send"), "tool_choice.name is the name of tools in several namespaces");
    refused(f("fnid"), "tool_choice.name names no tool that is offered");
    refused(
        json!({ "type": "function", "name": "find", "namespace": "functions" }),
        "tool_choice.name names no tool that is offered",
    );
    refused(allow(json!([f("find"), f("fnid")])), "tool_choice.tools[1].name names no tool");
    refused(allow(json!([{ "type": "function" }])), "tool_choice.tools[0].name is missing");
    refused(
        allow(json!([{ "type": "file_search" }])),
        "tool_choice.tools[0].type must be function, custom or",
    );
    refused(allow(json!([])), "tool_choice.tools must name at least one");
    refused(allow(json!([{ "type": "web_search" }])), "tool_choice.tools must name at least one");
}
