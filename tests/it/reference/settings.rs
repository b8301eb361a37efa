//! `docs/reference/configuration.md`: every setting, by its section.

use std::collections::BTreeSet;
use std::fmt::Write;

use stint::config::{DefaultDescription, SettingDescription, describe};

use crate::watching::is_up_to_date;

use super::{cell, wrapped};

const HEAD: &str = "# Configuration\n\n\
Every setting of the TOML file. This page is made from what reads the file, and from the comments of\n\
[`config/stint.toml`](../../config/stint.toml), which has all of them as one file to copy from.\n\n\
`stint check` finds every mistake, with its line and the remedy. `stint config show` prints what holds. For completion in your editor:\n\n\
\x20   stint config schema > stint.schema.json\n\n\
Then put `#:schema ./stint.schema.json` into the first line of your file. Taplo reads that line, and so does Even Better TOML in\n\
Visual Studio Code.\n\n\
* A *time* carries its unit: `\"500ms\"`, `\"10s\"`, `\"1h 30m\"`.\n\
* A *size* is bytes, or carries its unit: `65536`, `\"64KiB\"`, `\"32MiB\"`.\n\
* *Dollars* are text: `\"0.02\"`.\n\
* A *path* starts from the folder of the file.\n\
* Where the default is empty, nothing holds until you write the setting.\n\
* \"Required\" means: its section cannot be without it.\n\
* Settings of a `[[backend.model]]` may have their default from the [catalogue](../upstreams.md#what-is-known-about-models).\n";

fn page() -> String {
    let all = describe();
    let mut page = HEAD.to_owned();
    let mut sections: Vec<&str> = Vec::new();
    for setting in all.iter().filter(|setting| setting.name.is_some()) {
        if !sections.contains(&setting.section.as_str()) {
            sections.push(&setting.section);
        }
    }
    for section in sections {
        let own = all.iter().filter(|setting| setting.section == section);
        let (about, keys): (Vec<_>, Vec<_>) = own.partition(|setting| setting.name.is_none());
        write!(page, "\n## `[{section}]`\n\n").unwrap();
        for help in about.iter().map(|about| &about.help).filter(|help| !help.is_empty()) {
            write!(page, "{}\n\n", wrapped(help)).unwrap();
        }
        page += "| setting | may be | default | |\n|---|---|---|---|\n";
        for (place, setting) in keys.iter().enumerate() {
            let alike =
                keys[..place].iter().find(|other| !other.help.is_empty() && other.help == setting.help);
            page += &row(setting, alike.and_then(|other| other.name.as_deref()), &all);
        }
    }
    page
}

/// One that is described together with another points there.
fn row(setting: &SettingDescription, alike: Option<&str>, all: &[SettingDescription]) -> String {
    let SettingDescription { name, kind, default, help, .. } = setting;
    let default = match default {
        // In a code span no sign is special but the end of the cell.
        Some(DefaultDescription::Value(value)) => format!("`{}`", value.trim().replace('|', "\\|")),
        Some(DefaultDescription::Words(words)) => cell(words),
        None => String::new(),
    };
    let name = name.as_deref().unwrap_or_default();
    let help = alike.map_or_else(|| help.clone(), |other| format!("See `{other}`."));
    let help = format!("{help}{}", only_for(setting, all));
    format!("| `{name}` | {} | {default} | {} |\n", cell(kind), cell(help.trim()))
}

/// The kinds of backends that have it, or that have it not, whichever is shorter.
fn only_for(setting: &SettingDescription, all: &[SettingDescription]) -> String {
    let every: BTreeSet<&str> = all.iter().flat_map(|setting| setting.kinds.iter().copied()).collect();
    let having: BTreeSet<&str> = setting.kinds.iter().copied().collect();
    let listed =
        |kinds: Vec<&&str>| kinds.iter().map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(", ");
    let lacking: Vec<&&str> = every.difference(&having).collect();
    match having.len() {
        0 => String::new(),
        most if most <= lacking.len() => format!(" *Kinds {}.*", listed(having.iter().collect())),
        _ => format!(" *All kinds but {}.*", listed(lacking)),
    }
}

#[test]
fn the_reference_page_of_the_configuration_is_made_from_what_reads_it() {
    is_up_to_date("docs/reference/configuration.md", &page());
}

#[test]
fn every_setting_and_every_section_is_described_in_words() {
    let all = describe();
    // What stands in braces may be described as a whole, where its section is.
    let is_described = |section: &str| {
        let about = all.iter().find(|about| about.section == section && about.name.is_none());
        section.contains('.') && about.is_some_and(|about| about.help.len() >= 10)
    };
    let bare: Vec<String> = all
        .iter()
        .filter(|setting| setting.name.is_some() && setting.help.len() < 5 && !is_described(&setting.section))
        .map(|setting| format!("{}.{}", setting.section, setting.name.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(bare, Vec::<String>::new(), "write a comment above each in config/stint.toml");
}
