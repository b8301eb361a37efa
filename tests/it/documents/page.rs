//! One page of the documentation, taken apart.

use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A page, by its path from the root of the repository.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) code: Vec<Code>,
    /// Addresses of its links and pictures.
    pub(super) links: Vec<String>,
    /// What its headings are called in addresses.
    pub(super) anchors: Vec<String>,
    /// Paragraphs and items of lists, without code. Tables and headings are left out.
    pub(super) prose: Vec<String>,
}

/// A block of code.
#[derive(Debug)]
pub(super) struct Code {
    /// What stands behind its fence; empty for an indented block.
    pub(super) language: String,
    pub(super) text: String,
}

/// Every page that people read.
pub(super) fn pages() -> Vec<Page> {
    let mut paths = vec![PathBuf::from("README.md"), "SECURITY.md".into(), "CONTRIBUTING.md".into()];
    collect(Path::new("docs"), &mut paths);
    paths.into_iter().map(Page::read).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|end| end == "md") {
            paths.push(path);
        }
    }
}

impl Page {
    fn read(path: PathBuf) -> Page {
        let text = fs::read_to_string(&path).unwrap();
        let mut page = Page { path, text, code: vec![], links: vec![], anchors: vec![], prose: vec![] };
        let text = page.text.clone();
        page.take_apart(&text);
        page
    }

    fn take_apart(&mut self, text: &str) {
        let mut place = Place::default();
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(tag) => self.start(tag, &mut place),
                Event::End(tag) => self.end(tag, &mut place),
                Event::Text(text) if place.code => {
                    if let Some(code) = self.code.last_mut() {
                        code.text.push_str(&text);
                    }
                }
                Event::Text(text) => place.words.push_str(&text),
                Event::Code(text) => {
                    // One word, however much stands in it; an anchor has all of it.
                    place.words.push_str(if place.heading { &text } else { "code" });
                }
                Event::SoftBreak | Event::HardBreak => place.words.push(' '),
                _ => {}
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>, place: &mut Place) {
        match tag {
            Tag::CodeBlock(kind) => {
                place.code = true;
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code.push(Code { language, text: String::new() });
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.links.push(dest_url.to_string()),
            Tag::Heading { .. } => {
                place.words.clear();
                place.heading = true;
            }
            Tag::Table(_) => place.table = true,
            // What stands before an item's own list is an item of its own.
            Tag::Paragraph | Tag::Item | Tag::List(_) => self.flush(place),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd, place: &mut Place) {
        match tag {
            TagEnd::CodeBlock => place.code = false,
            TagEnd::Heading(_) => {
                self.anchors.push(anchor(&place.words));
                place.words.clear();
                place.heading = false;
            }
            TagEnd::Table => {
                place.table = false;
                place.words.clear();
            }
            TagEnd::Paragraph | TagEnd::Item => self.flush(place),
            _ => {}
        }
    }

    fn flush(&mut self, place: &mut Place) {
        let words = std::mem::take(&mut place.words);
        if !place.table && !words.trim().is_empty() {
            self.prose.push(words);
        }
    }
}

/// Where the reader is while it goes through a page.
#[derive(Debug, Default)]
struct Place {
    words: String,
    code: bool,
    heading: bool,
    table: bool,
}

/// What a heading is called in addresses, as code hosts do it.
fn anchor(heading: &str) -> String {
    let kept = heading
        .trim()
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .collect::<String>();
    kept.replace(' ', "-")
}
