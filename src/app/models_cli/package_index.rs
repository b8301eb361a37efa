//! The index of Python packages, as `pip` on this machine has it configured: where a package's file is.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::{Client, Response};

use super::download::{DownloadError, shown};

/// What `pip` uses where nothing is configured.
const PUBLIC: &str = "https://pypi.org/simple";

/// Longer than the page of any package that is fetched here.
const PAGE_BYTES_MAX: u64 = 8 << 20;

/// More links than such a page has.
const LINKS_MAX: usize = 10_000;

/// A page comes whole within this time.
const PAGE_TIME_MAX: Duration = Duration::from_secs(120);

/// The index that is asked: the stated one, else the one in `pip`'s variable, else in its files.
pub(super) fn index(stated: Option<&str>, variable: &dyn Fn(&str) -> Option<String>) -> String {
    let configured =
        || files(variable).iter().rev().find_map(|file| configured_in(&std::fs::read_to_string(file).ok()?));
    let index = stated.map(str::to_owned).or_else(|| variable("PIP_INDEX_URL")).or_else(configured);
    index.unwrap_or_else(|| PUBLIC.to_owned())
}

/// The files that `pip` reads; later ones win.
fn files(variable: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("/etc/pip.conf")];
    if let Some(home) = variable("HOME").map(PathBuf::from) {
        let settings = variable("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
        files.extend([home.join(".pip/pip.conf"), settings.join("pip/pip.conf")]);
    }
    files.extend(variable("PIP_CONFIG_FILE").map(PathBuf::from));
    files
}

/// `index-url` of `[global]` or `[install]`.
fn configured_in(text: &str) -> Option<String> {
    let mut is_read = false;
    let mut index = None;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            is_read = matches!(section.trim_end_matches(']'), "global" | "install");
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_read)
            && matches!(key.trim(), "index-url" | "index_url")
        {
            index = Some(value.trim().to_owned());
        }
    }
    index
}

/// The address of a wheel on an index's page for its package.
pub(super) async fn wheel_address(
    client: &Client,
    index: &str,
    package: &str,
    version: &str,
) -> Result<Option<String>, DownloadError> {
    let page = format!("{}/{package}/", index.trim_end_matches('/'));
    let request = client.get(&page).header("accept", "text/html").timeout(PAGE_TIME_MAX);
    let response = request.send().await.map_err(|error| unreachable(&page, error))?;
    if !response.status().is_success() {
        return Err(DownloadError::Status(shown(&page), response.status().as_u16()));
    }
    let base = response.url().clone();
    let text = read_page(response, &page).await?;
    let file = format!("{}-{version}-py3-none-any.whl", package.replace('-', "_"));
    let found =
        find_link(&text, &file).map_err(|max| DownloadError::TooManyLinks { url: shown(&page), max })?;
    Ok(found.and_then(|link| base.join(&link).ok()).map(|url| url.to_string()))
}

/// The text of a page, which is no longer than such pages are.
async fn read_page(response: Response, page: &str) -> Result<String, DownloadError> {
    let mut text = Vec::new();
    let mut body = response.bytes_stream();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|error| unreachable(page, error))?;
        if (text.len() + piece.len()) as u64 > PAGE_BYTES_MAX {
            return Err(DownloadError::TooLong(shown(page), PAGE_BYTES_MAX));
        }
        text.extend_from_slice(&piece);
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn unreachable(page: &str, error: reqwest::Error) -> DownloadError {
    DownloadError::Unreachable(shown(page), error.without_url())
}

/// The link of a page that leads to a file of this name; an error, with how many there may be, where there are too many to look
/// through.
fn find_link(page: &str, file: &str) -> Result<Option<String>, usize> {
    for (at, link) in links(page).enumerate() {
        if at >= LINKS_MAX {
            return Err(LINKS_MAX);
        }
        let path = link.split(['?', '#']).next().unwrap_or_default();
        if path.rsplit('/').next() == Some(file) {
            return Ok(Some(link));
        }
    }
    Ok(None)
}

/// The targets of a page's links.
fn links(page: &str) -> impl Iterator<Item = String> {
    page.split("href=").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        Some(rest[1..].split(quote).next()?.replace("&amp;", "&"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_the_one_that_pip_uses() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("pip.conf");
        std::fs::write(
            &file,
            "[list]\nindex-url = a\n[global]\ncert = x\nindex-url = https://files.example/simple\n",
        )
        .unwrap();
        let path = file.to_str().unwrap().to_owned();
        let variable = move |name: &str| (name == "PIP_CONFIG_FILE").then(|| path.clone());
        assert_eq!(index(None, &variable), "https://files.example/simple");
        assert_eq!(index(Some("https://other.example"), &variable), "https://other.example");
        let both = |name: &str| match name {
            "PIP_INDEX_URL" => Some("https://set.example".to_owned()),
            name => variable(name),
        };
        assert_eq!(index(None, &both), "https://set.example");
    }

    #[test]
    fn links_are_found_in_a_page_however_they_are_quoted() {
        let page = "<a href=\"../a-1.whl#sha256=0\">a</a><a class=x href='b.whl?x&amp;y'>b</a><a href=c>";
        assert_eq!(links(page).collect::<Vec<_>>(), ["../a-1.whl#sha256=0", "b.whl?x&y"]);
    }

    #[test]
    fn a_page_of_too_many_links_is_not_looked_through() {
        let page = |others: usize| "<a href='a.whl'>".repeat(others) + "<a href='x/b.whl#y'>";
        assert_eq!(find_link(&page(LINKS_MAX - 1), "b.whl"), Ok(Some("x/b.whl#y".to_owned())));
        assert_eq!(find_link(&page(LINKS_MAX), "b.whl"), Err(LINKS_MAX));
        assert_eq!(find_link(&page(1), "c.whl"), Ok(None));
    }
}
