//! Inside a crate the files form a ladder too: no circle of more than three, so that a file can be read by itself.
//!
//! A file depends on another where it names something that is defined there. What a `pub use` hands on is traced to where it is
//! defined, so a façade makes no circle. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::paths::{Form, Named, Token, paths, tokens};
use super::{for_each_file, place, sources};

/// The most files of a circle.
const CIRCLE_MAX: usize = 3;

type Module = Vec<String>;

#[test]
fn no_more_than_three_files_need_each_other() -> io::Result<()> {
    let mut circles = Vec::new();
    for root in sources()? {
        let mut house = House::default();
        for_each_file(&root, &mut |file, text| house.add(file, text))?;
        let long = house.circles().into_iter().filter(|circle| circle.len() > CIRCLE_MAX);
        circles.extend(long.map(|circle| format!("{}: {}", root.display(), shown(&circle))));
    }
    assert!(circles.is_empty(), "\n{}", circles.join("\n"));
    Ok(())
}

fn shown(circle: &[Module]) -> String {
    let files: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
    format!("{} files need each other: {}", files.len(), files.join(", "))
}

/// What the files of a crate name, and what they hand on.
#[derive(Default)]
struct House {
    files: BTreeMap<Module, Vec<Module>>,
    /// The names that a file has for what is defined elsewhere.
    names: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl House {
    fn add(&mut self, file: &str, text: &str) {
        let module = place(file);
        let is_test =
            |part: &String| ["tests", "conformance"].contains(&part.as_str()) || part.ends_with("_tests");
        if file.ends_with("main.rs") || module.iter().any(is_test) {
            return;
        }
        let found = paths(&without_tests(tokens(text)), &module);
        let names = found.iter().filter(|named| named.form != Form::Code).filter_map(known_as).collect();
        self.names.insert(module.clone(), names);
        let used = found.into_iter().filter(|named| named.form != Form::Reexport);
        self.files.insert(module, used.map(|named| named.path).collect());
    }

    /// The file in which `path` ends.
    fn file_of(&self, path: &[String], depth: usize) -> Option<Module> {
        let length = (0..=path.len()).rev().find(|length| self.files.contains_key(&path[..*length]))?;
        let module = path[..length].to_vec();
        let (name, rest) = match path[length..].split_first() {
            Some(split) if depth < 8 => split,
            _ => return Some(module),
        };
        match self.names[&module].get(name) {
            Some(elsewhere) if elsewhere[..] != path[..=length] => {
                let path: Module = elsewhere.iter().chain(rest).cloned().collect();
                self.file_of(&path, depth + 1)
            }
            _ => Some(module),
        }
    }

    /// The other files that each file needs.
    fn needs(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        let of = |(module, paths): (&'_ Module, &Vec<Module>)| {
            let needed = paths.iter().filter_map(|path| self.file_of(path, 0));
            needed.filter(|other| other != module).collect()
        };
        self.files.iter().map(|file| (file.0, of(file))).collect()
    }

    /// The groups of files of which each reaches all others.
    fn circles(&self) -> Vec<Vec<Module>> {
        let needs = self.needs();
        let reached: BTreeMap<&Module, BTreeSet<Module>> =
            needs.keys().map(|module| (*module, reach(module, &needs))).collect();
        let mut circles = BTreeSet::new();
        for (module, others) in &reached {
            let circle: Vec<Module> =
                others.iter().filter(|other| reached[other].contains(*module)).cloned().collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        circles.into_iter().collect()
    }
}

fn reach(from: &Module, needs: &BTreeMap<&Module, BTreeSet<Module>>) -> BTreeSet<Module> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from.clone()]);
    while let Some(module) = open.pop() {
        open.extend(needs[&module].iter().filter(|next| reached.insert((*next).clone())).cloned());
    }
    reached
}

/// The name under which something from elsewhere is known in a file.
fn known_as(named: &Named) -> Option<(String, Module)> {
    let name = named.alias.as_ref().or(named.path.last())?;
    Some((name.clone(), named.path.clone()))
}

/// The tokens of what is compiled into the program.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let is_mark = |at: usize| {
        MARK.iter().enumerate().all(|(i, word)| tokens.get(at + i).is_some_and(|token| token.text == *word))
    };
    let (mut kept, mut i) = (Vec::new(), 0);
    while i < tokens.len() {
        if is_mark(i) {
            i = item_end(&tokens, i + MARK.len());
        } else {
            kept.push(i);
            i += 1;
        }
    }
    let kept: BTreeSet<usize> = kept.into_iter().collect();
    tokens.into_iter().enumerate().filter(|(i, _)| kept.contains(i)).map(|(_, token)| token).collect()
}

/// Behind the item that begins at `i`, with its attributes.
fn item_end(tokens: &[Token], mut i: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(token) = tokens.get(i) {
        i += 1;
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            ";" if depth == 0 => break,
            "}" if depth == 1 => break,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    i
}

/// The circles of these files, as their modules' names.
fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let mut house = House::default();
    files.iter().for_each(|(file, text)| house.add(file, text));
    house.circles().into_iter().map(|circle| circle.iter().map(|module| module.join("/")).collect()).collect()
}

#[test]
fn a_circle_is_found_and_a_facade_makes_none() {
    let facade = ("src/a/mod.rs", "pub mod low;\nmod high;\npub use low::Low;\npub use high::High;");
    let low = ("src/a/low.rs", "pub struct Low;");
    let high = ("src/a/high.rs", "use super::Low;\npub struct High(Low);");
    assert_eq!(circles(&[facade, low, high]), Vec::<Vec<String>>::new());
    let round = ("src/a/low.rs", "pub struct Low;\nfn f(_: &super::High) {}");
    assert_eq!(circles(&[facade, round, high]), [["a/high", "a/low"]]);
    let tests = ("src/a/low.rs", "pub struct Low;\n#[cfg(test)]\nmod tests { use super::super::High; }");
    assert_eq!(circles(&[facade, tests, high]), Vec::<Vec<String>>::new());
    let parent = ("src/a/mod.rs", "mod low;\npub struct Top;\nfn f() { low::go(); }");
    let child = ("src/a/low.rs", "use super::Top;\npub fn go() {}");
    assert_eq!(circles(&[parent, child]), [["a", "a/low"]]);
}
