//! The pictures in the documentation, made anew on request.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use crate::harness::{Chromium, View};

use super::load::{Desk, KEY};

const WIDE: View = View { width: 1200, height: 730, scale: 1.0, is_dark: false };
const PHONE: View = View { width: 390, height: 780, scale: 1.0, is_dark: true };

/// What is asked for the pictures: sums of several lengths, with several budgets, in runs and alone.
async fn load(desk: &Desk, rounds: u64) {
    for round in 0..rounds {
        let asked = (0..4).map(|place| async move {
            let sum = format!("What is {}+{}*{}?", 10 + round * 7 % 80, 11 + place * 17, 2 + (round + place) % 8);
            let mut body = json!({ "model": "auto", "messages": [{ "role": "user", "content": sum }], "budget": {} });
            if place != 1 {
                body["budget"]["thinking_tokens"] = [8, 0, 16, 24, 40, 60, 120][usize::try_from((round + place * 3) % 7).unwrap()].into();
            }
            if place == 0 {
                body["budget"]["episode"] = json!({ "id": format!("task-{}", round / 6), "turns": 12, "cost_usd": "0.0004", "thinking_tokens": 400 });
            }
            desk.process.ask(KEY, &body).await
        });
        join_all(asked).await;
        tokio::time::sleep(Duration::from_millis(1200)).await;
    }
}

fn keep(browser: &mut Chromium, name: &str, view: View) {
    browser.see(view);
    browser.eval("new Promise((done) => setTimeout(done, 2500))");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), decoded(&browser.picture("png"))).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "makes the pictures in docs/images; `make pictures` runs it"]
async fn the_pictures_of_the_documentation() {
    let limits = "[[account]]\nname = \"acme\"\nlimits = [{ money = \"0.02\", per = \"month\" }, { thinking = 40000, per = \"day\" }]\n";
    let desk = Desk::new(limits);
    load(&desk, 45).await;
    let mut browser = desk.browser("now");
    load(&desk, 4).await;
    keep(&mut browser, "page-now.png", WIDE);
    browser.press("#panels a[href=\"#thinking\"]");
    keep(&mut browser, "page-thinking.png", View { height: 1180, ..WIDE });
    browser.press("#panels a[href=\"#episodes\"]");
    keep(&mut browser, "page-phone.png", PHONE);
}

/// The bytes of a text in base 64.
fn decoded(text: &str) -> Vec<u8> {
    let digit = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters = text.bytes().filter(|letter| *letter != b'=').map(digit).collect::<Vec<u8>>();
    let mut bytes = Vec::with_capacity(letters.len() * 3 / 4);
    for part in letters.chunks(4) {
        let bits =
            part.iter().fold(0_u32, |bits, digit| (bits << 6) | u32::from(*digit)) << (6 * (4 - part.len()));
        bytes.extend(&bits.to_be_bytes()[1..part.len()]);
    }
    bytes
}
