//! What providers refuse of the schemas that an answer or a tool's input is to fit: Anthropic's by platform.claude.com's page on
//! structured outputs, OpenAI's by platform.openai.com's (2026-11).

use serde_json::Value;

/// What Anthropic holds nobody to, and so refuses.
const UNKNOWN_TO_CLAUDE: [&str; 12] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "oneOf",
    "not",
    "patternProperties",
];
/// What OpenAI refuses of a strict schema.
const NOT_STRICT: [&str; 6] = ["oneOf", "allOf", "not", "default", "patternProperties", "minLength"];

/// What of a request's schemas was counted.
#[derive(Debug, Default)]
pub(super) struct CountedSchemas {
    tools: usize,
    optional: usize,
    unions: usize,
}

/// Why Anthropic refuses a request's schemas, if it does.
pub(super) fn claude(body: &Value) -> Option<String> {
    let mut counted = CountedSchemas::default();
    let format = &body["output_config"]["format"]["schema"];
    let place = "output_config.format.schema";
    if let Some(why) = of_claude(format, place, &mut counted).or_else(|| circle(format, place)) {
        return Some(why);
    }
    for (at, tool) in body["tools"].as_array().into_iter().flatten().enumerate() {
        if tool["strict"] == true {
            let (schema, place) = (&tool["input_schema"], format!("tools.{at}.custom.input_schema"));
            counted.tools += 1;
            if let Some(why) = of_claude(schema, &place, &mut counted).or_else(|| circle(schema, &place)) {
                return Some(why);
            }
        }
    }
    let CountedSchemas { tools, optional, unions } = counted;
    (tools > 20 || optional > 24 || unions > 16).then(|| {
        format!("Schemas are too complex: {tools} strict tools, {optional} optional parameters, {unions} parameters of several types")
    })
}

fn of_claude(schema: &Value, place: &str, counted: &mut CountedSchemas) -> Option<String> {
    let members = schema.as_object()?;
    if schema["type"] == "object" && schema["additionalProperties"] != false {
        return Some(format!(
            "{place}: For 'object' type, 'additionalProperties' must be explicitly set to false"
        ));
    }
    if let Some(name) = UNKNOWN_TO_CLAUDE.iter().find(|name| members.contains_key(**name)) {
        return Some(format!("{place}: property '{name}' is not supported"));
    }
    if schema["minItems"].as_u64().is_some_and(|least| least > 1) {
        return Some(format!(
            "{place}: For 'array' type, 'minItems' values other than 0 or 1 are not supported"
        ));
    }
    counted.unions += usize::from(schema["type"].is_array() || schema["anyOf"].is_array());
    let required =
        |name: &String| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    counted.optional +=
        schema["properties"].as_object().into_iter().flatten().filter(|(name, _)| !required(name)).count();
    parts(schema).into_iter().find_map(|part| of_claude(part, place, counted))
}

/// Whether a definition leads to itself.
fn circle(schema: &Value, place: &str) -> Option<String> {
    let definitions = schema["$defs"].as_object();
    let is_circle = |name: &str| {
        let (mut seen, mut next) = (Vec::new(), targets(&schema["$defs"][name]));
        while let Some(name) = next.pop() {
            if !seen.contains(&name) {
                next.extend(targets(&schema["$defs"][&name]));
                seen.push(name);
            }
        }
        seen.iter().any(|seen| seen == name)
    };
    let is_own = schema.to_string().contains("\"$ref\":\"#\"");
    let has_circle = is_own || definitions.into_iter().flatten().any(|(name, _)| is_circle(name));
    has_circle.then(|| format!("{place}: Circular reference detected in schema definitions"))
}

fn targets(schema: &Value) -> Vec<String> {
    let own = schema["$ref"].as_str().and_then(|target| target.strip_prefix("#/$defs/")).map(str::to_owned);
    own.into_iter().chain(parts(schema).into_iter().flat_map(targets)).collect()
}

/// The schemas within a schema.
fn parts(schema: &Value) -> Vec<&Value> {
    let named = ["properties", "$defs"].into_iter().filter_map(|name| schema[name].as_object());
    let listed = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|name| schema[name].as_array());
    let items = schema.get("items").into_iter();
    named.flat_map(|all| all.values()).chain(listed.flatten()).chain(items).collect()
}

/// Why OpenAI refuses a schema that is to be held to, if it does.
pub(super) fn strict(schema: &Value) -> Option<String> {
    if let Some(name) = NOT_STRICT.iter().find(|name| schema.get(**name).is_some()) {
        return Some(format!("'{name}' is not permitted."));
    }
    if schema["format"] == "uri" {
        return Some("'uri' is not a valid format.".to_owned());
    }
    if ["type", "$ref", "anyOf"].iter().all(|name| schema.get(*name).is_none()) {
        return Some("schema must have a 'type' key.".to_owned());
    }
    if schema["type"] == "object" {
        if schema["additionalProperties"] != false {
            return Some("'additionalProperties' is required to be supplied and to be false.".to_owned());
        }
        let required = |name: &String| {
            schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
        };
        if let Some((name, _)) =
            schema["properties"].as_object().into_iter().flatten().find(|(name, _)| !required(name))
        {
            return Some(format!(
                "'required' is required to be supplied and to be an array including every key in properties. Missing '{name}'."
            ));
        }
    }
    parts(schema).into_iter().find_map(strict)
}
