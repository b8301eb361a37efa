//! Items that a request sends though what it continues has them already. Some clients send a call again with its output.

use std::collections::HashSet;

use serde_json::Value;

/// The kinds that one `call_id` has once each.
const CALLS: [&str; 2] = ["function_call", "custom_tool_call"];
const OUTPUTS: [&str; 2] = ["function_call_output", "custom_tool_call_output"];

/// The places in the input of items that are stored already.
pub(super) fn repeated(stored: &[Value], input: &[Value]) -> HashSet<usize> {
    if stored.is_empty() || !input.iter().any(|item| identity(item).is_some()) {
        return HashSet::new();
    }
    let known: HashSet<ItemIdentity<'_>> = stored.iter().filter_map(identity).collect();
    let is_known = |item: &Value| identity(item).is_some_and(|identity| known.contains(&identity));
    input.iter().enumerate().filter(|(_, item)| is_known(item)).map(|(at, _)| at).collect()
}

/// What makes a call or an output the same as another one.
#[derive(PartialEq, Eq, Hash)]
struct ItemIdentity<'i> {
    kind: &'i str,
    call_id: &'i str,
    /// The tool of a call, what an output says.
    content: String,
}

fn identity(item: &Value) -> Option<ItemIdentity<'_>> {
    let (kind, call_id) = (item["type"].as_str()?, item["call_id"].as_str()?);
    let content = match kind {
        kind if CALLS.contains(&kind) => item["name"].to_string(),
        kind if OUTPUTS.contains(&kind) => item["output"].to_string(),
        _ => return None,
    };
    Some(ItemIdentity { kind, call_id, content })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_and_an_output_that_are_stored_are_known_again() {
        let call = json!({ "type": "function_call", "call_id": "c1", "name": "w", "arguments": "{}" });
        let output = |text: &str| json!({ "type": "function_call_output", "call_id": "c1", "output": text });
        let user = json!({ "role": "user", "content": "and?" });
        let input = [call.clone(), output("sunny"), user];
        assert_eq!(repeated(std::slice::from_ref(&call), &input), HashSet::from([0]));
        assert_eq!(repeated(&[call.clone(), output("sunny")], &input), HashSet::from([0, 1]));
        assert_eq!(
            repeated(&[call, output("rainy")], &input),
            HashSet::from([0]),
            "another output is none of it"
        );
        assert_eq!(repeated(&[], &input), HashSet::new());
    }
}
