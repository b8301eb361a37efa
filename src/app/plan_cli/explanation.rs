//! What a decision rests on, as tables.

use serde_json::{Map, Value};

use super::super::output::align_columns;
use super::text;

/// What was seen of the question, what is known of each model, and what follows for it.
pub(super) fn tables(quote: &Value) -> String {
    let (demand, explanation) = (&quote["demand"], &quote["explanation"]);
    let none = Map::new();
    let models = explanation["models"].as_object().unwrap_or(&none);
    let class = text(&demand["class"]);
    let [difficulty, confidence] =
        ["difficulty", "confidence"].map(|name| demand[name].as_f64().unwrap_or(0.0));
    let words = text(&explanation["known_words"]);
    format!(
        "{class}, difficulty {difficulty:.2}, sure to {confidence:.2}; {words} of its words are known\n\
         counted: {}\ntraits: {}\n\n{}\n\n{}\n",
        counts(&explanation["features"]),
        traits(&explanation["traits"]),
        levels(models),
        predictions(models),
    )
}

/// What was counted in the question: features are ln(1 + count), but for those that are there or are not.
fn counts(features: &Value) -> String {
    let none = Map::new();
    let all = features.as_object().unwrap_or(&none).iter().filter(|(name, _)| *name != "bias");
    let shown = all.map(|(name, value)| {
        let value = value.as_f64().unwrap_or(0.0);
        match &**name {
            "code" | "options" | "story" => name.clone(),
            _ => format!("{name} {:.0}", value.exp_m1()),
        }
    });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { "nothing".to_owned() } else { shown.join(", ") }
}

fn traits(traits: &Value) -> String {
    let each = traits.as_array().into_iter().flatten();
    let shown: Vec<String> = each.map(|it| format!("{:.2}", it.as_f64().unwrap_or(0.0))).collect();
    shown.join(" ")
}

/// How able each model is taken to be, and from where that is known.
fn levels(models: &Map<String, Value>) -> String {
    let head = ["model", "level known", "after a thought", "without", "learned from"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (name, model) in models {
        let level = &model["level"];
        let known = match (level["guessed"].as_str(), level["source"].as_str()) {
            (Some(from), _) => format!("guessed {from}"),
            (None, Some("fitted")) => "fitted on its answers".to_owned(),
            (None, _) => "stated or published".to_owned(),
        };
        let share = |which: &str| match level[which]["share"].as_f64() {
            Some(share) => {
                format!("{:.1} % ±{:.2}", share * 100.0, level[which]["spread"].as_f64().unwrap_or(0.0))
            }
            None => "-".to_owned(),
        };
        let observed = text(&level["observations"]);
        rows.push(vec![name.clone(), known, share("after_thought"), share("without_thought"), observed]);
    }
    align_columns(&rows, 2) + "\n(levels as shares of MMLU-Pro in this class of work, ± in logits)"
}

/// What is predicted of each model: lengths as quantiles, success before and after what was learned.
fn predictions(models: &Map<String, Value>) -> String {
    let head = [
        "model",
        "prompt",
        "thought p50/p90/p99",
        "answer",
        "reserved p90/p99",
        "right without",
        "after a thought",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (name, model) in models {
        let is_measured = |what: &str| if model["measured"][what] == true { "" } else { "~" };
        let lengths = |what: &str, names: &[&str]| {
            let all: Vec<String> = names.iter().map(|name| whole(&model[what][name])).collect();
            all.join("/")
        };
        let chance = |which: &str| {
            let (now, before) = (&model["success"][which], &model["before_learning"]["success"][which]);
            match (percent(now), percent(before)) {
                (now, before) if now == before => now,
                (now, before) => format!("{before} → {now}"),
            }
        };
        // Of a model that does not think there is no level after a thought.
        let thinks = model["level"]["source"] == "fitted" || model["level"]["after_thought"].is_object();
        let thought = |shown: String| if thinks { shown } else { "-".to_owned() };
        rows.push(vec![
            name.clone(),
            text(&model["prompt_tokens"]["expected"]),
            thought(is_measured("thinking").to_owned() + &lengths("thinking_tokens", &["p50", "p90", "p99"])),
            is_measured("solution").to_owned() + &lengths("solution_tokens", &["expected"]),
            lengths("solution_tokens", &["reserved_p90", "reserved_p99"]),
            chance("without_thought"),
            thought(chance("after_thought")),
        ]);
    }
    align_columns(&rows, 1)
        + "\n(~: lengths of other models, none measured of this one; →: what was learned changed)"
}

fn whole(value: &Value) -> String {
    format!("{:.0}", value.as_f64().unwrap_or(0.0))
}

fn percent(value: &Value) -> String {
    format!("{:.1} %", value.as_f64().unwrap_or(0.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_guess_is_called_one_and_what_was_learned_stands_beside_what_was_predicted() {
        let thoughts = json!({ "p50": 20.0, "p90": 40.0, "p99": 80.0 });
        let answers = json!({ "expected": 25, "reserved_p90": 300, "reserved_p99": 900 });
        let model = json!({
            "prompt_tokens": { "expected": 12, "most": 30 },
            "thinking_tokens": thoughts, "solution_tokens": answers,
            "measured": { "thinking": true, "solution": false },
            "success": { "without_thought": 0.5, "after_thought": 0.8, "spread": 0.1 },
            "before_learning": { "success": { "without_thought": 0.5, "after_thought": 0.6 } },
            "level": { "source": "guessed", "guessed": "from other qwen3 models", "observations": 7,
                       "after_thought": { "share": 0.72, "spread": 0.4 },
                       "without_thought": { "share": 0.61, "spread": 0.4 } },
        });
        let quote = json!({
            "demand": { "class": "math", "difficulty": 0.3, "confidence": 0.5 },
            "explanation": { "features": { "bias": 1.0, "numbers": 3.0_f64.ln(), "code": 1.0 },
                             "traits": [0.5, -0.25], "known_words": 3, "models": { "m": model } },
        });
        let shown = tables(&quote);
        for told in [
            "math, difficulty 0.30, sure to 0.50; 3 of its words are known",
            "counted: numbers 2, code",
            "traits: 0.50 -0.25",
            "guessed from other qwen3 models",
            "61.0 % ±0.40",
            "20/40/80",
            "~25",
            "300/900",
            "60.0 % → 80.0 %",
        ] {
            assert!(shown.contains(told), "{told} is not in\n{shown}");
        }
    }
}
