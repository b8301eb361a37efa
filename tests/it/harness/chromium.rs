//! A real Chromium without a window, driven by its pipe for developers.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long a page may take until something is so, in milliseconds: other tests keep the machine busy.
const PATIENCE: u32 = 60_000;

/// A browser with one page.
pub(crate) struct Chromium {
    child: Child,
    asked: ChildStdin,
    told: BufReader<ChildStdout>,
    calls: u64,
    session: Option<String>,
    /// What pages complained of: errors that nobody caught, and what their policy refused.
    pub(crate) complaints: Vec<String>,
    _profile: TempDir,
}

/// How a page is seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) scale: f64,
    pub(crate) is_dark: bool,
}

impl Chromium {
    /// A browser that shows this page.
    pub(crate) fn open(url: &str) -> Chromium {
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        // It reads calls from descriptor 3 and writes to 4.
        command.args(["-c", "exec chromium \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null", "sh"]);
        // Without a sandbox, which root cannot have, and with little shared memory, as in a container.
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
        command.args(["--hide-scrollbars", "--remote-debugging-pipe"]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (asked, told) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let (calls, session, complaints) = (0, None, Vec::new());
        let mut browser = Chromium { child, asked, told, calls, session, complaints, _profile: profile };
        let page = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attached =
            browser.call("Target.attachToTarget", &json!({ "targetId": page["targetId"], "flatten": true }));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Performance.enable"] {
            browser.call(domain, &json!({}));
        }
        browser.go(url);
        browser
    }

    /// Goes to another page.
    pub(crate) fn go(&mut self, url: &str) {
        let went = self.call("Page.navigate", &json!({ "url": url }));
        assert!(went.get("errorText").is_none(), "no chromium, or no page: {went}");
        self.until("document.readyState === 'complete'");
    }

    /// Calls a method of the protocol.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let mut call = json!({ "id": self.calls, "method": method, "params": params });
        if let Some(session) = &self.session {
            call["sessionId"] = session.as_str().into();
        }
        self.asked.write_all(format!("{call}\0").as_bytes()).expect("no chromium: run `make test-tools`");
        loop {
            let mut text = Vec::new();
            self.told.read_until(0, &mut text).unwrap();
            text.pop();
            let message: Value = serde_json::from_slice(&text).expect("chromium has ended");
            if message["id"] == self.calls {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.note(&message);
        }
    }

    fn note(&mut self, message: &Value) {
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.complaints.push(params["exceptionDetails"].to_string()),
            // What a server refuses is told by the page itself.
            Some("Log.entryAdded") if params["entry"]["source"] != "network" => {
                self.complaints.push(params["entry"]["text"].to_string());
            }
            _ => {}
        }
    }

    /// What an expression is in the page, waited for where it is a promise.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let told = self.call("Runtime.evaluate", &asked);
        assert!(told.get("exceptionDetails").is_none(), "{expression}: {told}");
        told["result"]["value"].clone()
    }

    /// Waits until a condition holds in the page.
    pub(crate) fn until(&mut self, condition: &str) {
        let asked = format!(
            "new Promise((done) => {{ const end = Date.now() + {PATIENCE}; const look = () => {{ let holds = false; \
             try {{ holds = Boolean({condition}); }} catch {{ holds = false; }} \
             if (holds || Date.now() > end) done(holds); else setTimeout(look, 20); }}; look(); }})"
        );
        let holds = self.eval(&asked);
        assert_eq!(
            holds,
            true,
            "{condition}\n{}\n{:?}",
            self.eval("document.body.innerText"),
            self.complaints
        );
    }

    /// Waits until the text of an element has these words, and returns all of it.
    pub(crate) fn shows(&mut self, selector: &str, words: &str) -> String {
        let (element, words) = (quoted(selector), quoted(words));
        self.until(&format!("document.querySelector({element}).textContent.includes({words})"));
        let text = self.eval(&format!("document.querySelector({element}).textContent"));
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Presses something.
    pub(crate) fn press(&mut self, selector: &str) {
        let element = quoted(selector);
        self.until(&format!("document.querySelector({element}) !== null"));
        self.eval(&format!("document.querySelector({element}).click()"));
    }

    /// Types into a field, key by key as far as the page can tell.
    pub(crate) fn types(&mut self, selector: &str, text: &str) {
        let element = quoted(selector);
        self.until(&format!("document.querySelector({element}) !== null"));
        self.eval(&format!(
            "(document.querySelector({element}).focus(), document.querySelector({element}).select?.())"
        ));
        self.call("Input.insertText", &json!({ "text": text }));
    }

    /// Sees the page so from now on.
    pub(crate) fn see(&mut self, view: View) {
        let View { width, height, scale, is_dark } = view;
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let scheme =
            json!({ "name": "prefers-color-scheme", "value": if is_dark { "dark" } else { "light" } });
        self.call("Emulation.setEmulatedMedia", &json!({ "features": [scheme] }));
    }

    /// A picture of what is seen, in base 64.
    pub(crate) fn picture(&mut self, kind: &str) -> String {
        let quality =
            if kind == "png" { json!({ "format": kind }) } else { json!({ "format": kind, "quality": 80 }) };
        let shot = self.call("Page.captureScreenshot", &quality);
        shot["data"].as_str().unwrap().to_owned()
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
