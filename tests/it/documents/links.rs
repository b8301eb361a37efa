//! Every link between pages, to files and to headings leads somewhere.

use std::path::{Component, Path, PathBuf};

use super::{Page, pages};

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let links: Vec<(&Page, &String)> =
        pages.iter().flat_map(|page| page.links.iter().map(move |link| (page, link))).collect();
    assert!(links.len() > 100, "the links are not read");
    let dead: Vec<String> = links
        .into_iter()
        .filter(|(_, link)| !link.contains("://") && !link.starts_with("mailto:"))
        .filter(|(page, link)| !leads_somewhere(page, link, &pages))
        .map(|(page, link)| format!("{}: {link}", page.path.display()))
        .collect();
    assert!(dead.is_empty(), "\n{}", dead.join("\n"));
}

fn leads_somewhere(page: &Page, link: &str, pages: &[Page]) -> bool {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() {
        page.path.clone()
    } else {
        plain(&page.path.parent().unwrap_or(Path::new("")).join(file))
    };
    if !target.exists() {
        return false;
    }
    let listed = pages.iter().find(|other| other.path == target);
    anchor.is_empty() || listed.is_none_or(|other| other.anchors.iter().any(|known| known == anchor))
}

/// The path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}
