//! Which rules the catalogue has, and which pair covers each. What is not about the wire (prices, contexts, scores, usual lengths)
//! has tests of its own.

use super::pairs::Group;

const SHIPPED: &str = include_str!("../../../config/models.toml");

/// The keys that change what is sent or how an answer is read. Every name that such an entry is about must have a pair. `thoughts_bound`
/// shows over whole runs alone, which `providers::bound` has.
const KEYS: [&str; 27] = [
    "allowed_tools",
    "cache_breakpoints",
    "cache_min",
    "chat_takes",
    "classes",
    "efforts",
    "end_tag",
    "hand_off",
    "late_efforts",
    "late_instructions",
    "late_tools",
    "off_peak",
    "omit",
    "omit_thinking",
    "refuses_forced_tools",
    "responses_efforts",
    "sampling",
    "start_tag",
    "starts_in_thinking",
    "switch_as",
    "task_budget_min",
    "thinking",
    "thinking_min",
    "thinking_off",
    "thinks_always",
    "thought_missing",
    "thoughts_back",
];
/// The same, of which one name of an entry is enough: the others are served alike.
const FAMILY_KEYS: [&str; 1] = ["tool_syntax"];

/// What an entry says by one of its keys.
pub(super) struct Rule {
    key: String,
    patterns: Vec<String>,
    kinds: Vec<String>,
    hosts: Vec<String>,
}

/// The rules of the shipped file.
pub(super) fn rules() -> Vec<Rule> {
    let file: toml::Table = toml::from_str(SHIPPED).unwrap();
    let entries = file["model"].as_array().unwrap();
    entries.iter().flat_map(|entry| rules_in(entry.as_table().unwrap())).collect()
}

/// The rules of an entry.
pub(super) fn rules_of(entry: &str) -> Vec<Rule> {
    rules_in(&toml::from_str(entry).unwrap())
}

fn rules_in(entry: &toml::Table) -> Vec<Rule> {
    let texts = |key: &str| -> Vec<String> {
        let list = entry.get(key).and_then(toml::Value::as_array).cloned().unwrap_or_default();
        list.iter().map(|text| text.as_str().unwrap().to_lowercase()).collect()
    };
    let keys = entry.keys().filter(|key| KEYS.contains(&&***key) || FAMILY_KEYS.contains(&&***key));
    keys.map(|key| Rule {
        key: key.clone(),
        patterns: texts("match"),
        kinds: texts("kinds"),
        hosts: texts("hosts"),
    })
    .collect()
}

impl Rule {
    /// What has no pair, if anything.
    pub(super) fn missing(&self, groups: &[Group]) -> Option<String> {
        let is_covered = |pattern: &&String| groups.iter().any(|group| self.is_covered_by(group, pattern));
        let lacks: Vec<&str> =
            self.patterns.iter().filter(|pattern| !is_covered(pattern)).map(|it| &**it).collect();
        let is_enough = FAMILY_KEYS.contains(&&*self.key) && lacks.len() < self.patterns.len();
        (!lacks.is_empty() && !is_enough).then(|| {
            let Rule { key, kinds, hosts, .. } = self;
            format!("{key} of {lacks:?} (kinds {kinds:?}, hosts {hosts:?}) has no pair in tests/fixtures/catalogue")
        })
    }

    fn is_covered_by(&self, group: &Group, pattern: &str) -> bool {
        let is_there = |hosts: &Vec<String>| {
            hosts.iter().any(|host| group.host == *host || group.host.ends_with(&format!(".{host}")))
        };
        group.rules.contains(&self.key)
            && (self.kinds.is_empty() || self.kinds.contains(&group.kind))
            && (self.hosts.is_empty() || is_there(&self.hosts))
            && group.models.iter().any(|model| matches(pattern, &model.to_lowercase()))
    }
}

/// Whether a name fits a pattern, in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(name) = name.strip_prefix(first) else { return false };
    (0..=name.len()).filter(|at| name.is_char_boundary(*at)).any(|at| matches(rest, &name[at..]))
}
