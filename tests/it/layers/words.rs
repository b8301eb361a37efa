//! One word for one thing: no type's name is defined twice, and the glossary names types that there are.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use super::for_each_source;

/// Names that each module may have for itself.
const OWN: [&str; 2] = ["Settings", "Error"];

#[test]
fn no_type_name_is_defined_twice() -> io::Result<()> {
    let twice: Vec<String> = defined()?
        .into_iter()
        .filter(|(name, places)| places.len() > 1 && !OWN.contains(&name.as_str()))
        .map(|(name, places)| format!("{name}: {}", places.join(", ")))
        .collect();
    assert!(twice.is_empty(), "\n{}", twice.join("\n"));
    Ok(())
}

/// What stands in where a feature is left out has the names of what it stands for.
#[test]
fn stand_ins_are_named_as_what_they_stand_for() -> io::Result<()> {
    let defined = defined()?;
    let mut names = 0;
    for_each_source(&mut |file, text| {
        for name in text.lines().filter_map(type_name).filter(|_| is_stand_in(file)) {
            assert!(defined.contains_key(name), "{file}: {name}");
            names += 1;
        }
    })?;
    assert!(names > 0);
    Ok(())
}

#[test]
fn the_glossary_names_types_that_there_are() -> io::Result<()> {
    let defined = defined()?;
    let glossary = fs::read_to_string("docs/glossary.md")?;
    let quoted = glossary.split('`').skip(1).step_by(2);
    let types: Vec<&str> = quoted.filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase())).collect();
    assert!(types.len() > 40, "the glossary is not read: {types:?}");
    let unknown: Vec<_> = types.into_iter().filter(|word| !defined.contains_key(*word)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    Ok(())
}

/// True for a file that is compiled in place of another where a feature is left out.
fn is_stand_in(file: &str) -> bool {
    file.rsplit('/').next().is_some_and(|name| name.starts_with("without_"))
}

/// Where each type of the workspace is defined, by its name. Stand-ins are left out.
fn defined() -> io::Result<BTreeMap<String, Vec<String>>> {
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for_each_source(&mut |file, text| {
        for (number, line) in text.lines().enumerate().filter(|_| !is_stand_in(file)) {
            if let Some(name) = type_name(line) {
                defined.entry(name.to_owned()).or_default().push(format!("{file}:{}", number + 1));
            }
        }
    })?;
    Ok(defined)
}

/// The type that a line begins to define. Associated types belong to their traits and are left out.
fn type_name(line: &str) -> Option<&str> {
    let is_indented = line.starts_with(' ');
    let mut words = line.split_whitespace().peekable();
    words.next_if(|word| *word == "pub" || word.starts_with("pub("));
    match words.next()? {
        "struct" | "enum" | "trait" | "union" => {}
        "type" if !is_indented => {}
        _ => return None,
    }
    let name = words.next()?;
    let length = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    name.starts_with(|c: char| c.is_ascii_uppercase()).then_some(&name[..length])
}

#[test]
fn definitions_are_told_from_uses() {
    assert_eq!(type_name("pub(super) struct Reader<'a> {"), Some("Reader"));
    assert_eq!(type_name("    enum Step {"), Some("Step"));
    assert_eq!(type_name("type Run = fn();"), Some("Run"));
    assert_eq!(type_name("    type Item = Piece;"), None);
    assert_eq!(type_name("/// struct Reader is documented"), None);
    assert_eq!(type_name("let x: Reader = read();"), None);
}
