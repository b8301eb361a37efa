//! `GET /` in a browser: what this is, what is served, and how to try it. It says nothing of tenants and keys, and who must
//! have a key to ask is not shown the models either.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use stint_types::catalog::{Catalog, Model, Specialty};
use stint_types::units::Price;

use super::admin::PageLink;
use super::api_state::ApiState;
use super::error::ApiError;

const PAGE: &str = include_str!("front.html");

/// Nothing but its own style may be loaded or run.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What any client but a browser gets.
const LINES: &str = "Stint, an inference gateway. The API is under /v1: GET /v1/models lists the models, and POST \
                     /v1/chat/completions asks one. A browser sees more here.\n";

/// The page for a browser, and two lines for any other client.
pub(super) async fn page(
    State(service): State<Arc<ApiState>>,
    method: Method,
    headers: HeaderMap,
    page: Option<Extension<PageLink>>,
) -> Response {
    if !matches!(method, Method::GET | Method::HEAD) {
        return ApiError::unknown_path().into_response();
    }
    if !wants_page(&headers) {
        return LINES.into_response();
    }
    let (is_open, base) = (service.keys.is_open(), base_url(&headers, &service));
    let front = FrontPage { is_open, has_page: is_open && page.is_some(), base, service: &service };
    let mut answer = front.page().into_response();
    let own = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::VARY, "accept"),
    ];
    own.into_iter().for_each(|(name, value)| {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    });
    answer
}

/// Browsers say so first; tools that take anything do not.
fn wants_page(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .any(|value| value.to_str().is_ok_and(|text| text.contains("text/html")))
}

/// By what address the browser reached this page. What a proxy says of itself is believed: nobody but the reader sees it.
fn base_url(headers: &HeaderMap, service: &ApiState) -> String {
    const PROTOCOL: HeaderName = HeaderName::from_static("x-forwarded-proto");
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let is_plain = |host: &&str| host.chars().all(|c| c.is_ascii_alphanumeric() || ".-_:[]".contains(c));
    let host = text(header::HOST).filter(is_plain).map(str::to_owned);
    let host = host.unwrap_or_else(|| service.settings.listen.to_string());
    let is_secure = service.settings.tls.is_some() || text(PROTOCOL) == Some("https");
    let scheme = if is_secure { "https" } else { "http" };
    format!("{scheme}://{host}")
}

/// The data of the page.
struct FrontPage<'s> {
    service: &'s ApiState,
    is_open: bool,
    /// True where this listener has the page of what the gateway does.
    has_page: bool,
    base: String,
}

impl FrontPage<'_> {
    fn page(&self) -> String {
        let catalog = self.service.gateway.catalog();
        let question = question(catalog);
        let parts = [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("served", self.served(catalog)),
            ("key", self.key().to_owned()),
            ("curl", escaped(&self.curl(question))),
            ("python", escaped(&self.python(question))),
            ("links", self.links()),
            ("base", self.base.clone()),
        ];
        parts
            .iter()
            .fold(PAGE.to_owned(), |page, (name, text)| page.replace(&format!("{{{{{name}}}}}"), text))
    }

    fn served(&self, catalog: &Catalog) -> String {
        if !self.is_open {
            return "<p>A key is needed to ask. What yours may use is listed at <code>GET /v1/models</code>.</p>".to_owned();
        }
        let mut table = String::from(
            "<table>\n<tr><th>model</th><th>context</th><th>dollars for a million tokens</th></tr>\n",
        );
        for model in catalog.models.values() {
            let (name, about) = (escaped(&model.name), about(model));
            let context =
                if model.knows_context() { model.context.to_string() } else { "unknown".to_owned() };
            let price = price(model);
            // Writing to a text does not fail.
            let _ = writeln!(
                table,
                "<tr><td><code>{name}</code>{about}</td><td>{context}</td><td>{price}</td></tr>"
            );
        }
        let routes: Vec<String> =
            catalog.routes.keys().map(|name| format!("<code>{}</code>", escaped(name))).collect();
        let chosen = format!(
            "<p>A request for the model {} leaves the choice to the gateway.</p>",
            routes.join(" or ")
        );
        format!(
            "{table}</table>\n{chosen}\n<p>No key is needed: anyone who reaches this address may ask.</p>"
        )
    }

    fn key(&self) -> &'static str {
        if self.is_open {
            "As it stands here, in a terminal:"
        } else {
            "With your key in the variable STINT_KEY:"
        }
    }

    fn curl(&self, question: &str) -> String {
        let key = if self.is_open { "" } else { " \\\n  -H \"authorization: Bearer $STINT_KEY\"" };
        let body = json!({ "model": "auto", "messages": [{ "role": "user", "content": question }] });
        let base = &self.base;
        format!(
            "curl {base}/v1/chat/completions{key} \\\n  -H 'content-type: application/json' \\\n  -d '{body}'"
        )
    }

    fn python(&self, question: &str) -> String {
        let (imports, key) =
            if self.is_open { ("", "\"none-needed\"") } else { ("import os\n", "os.environ[\"STINT_KEY\"]") };
        format!(
            "{imports}from openai import OpenAI\n\nclient = OpenAI(base_url=\"{}/v1\", api_key={key})\nanswer = \
             client.chat.completions.create(\n    model=\"auto\",\n    messages=[{{\"role\": \"user\", \"content\": \
             \"{question}\"}}],\n)\nprint(answer.choices[0].message.content)",
            self.base
        )
    }

    /// The pages that a browser can open from here.
    fn links(&self) -> String {
        let settings = &self.service.settings;
        let is_here = settings.metrics_listen.is_none();
        let pages = [
            ("/page", "what it does now, in pictures, and a playground", self.has_page),
            ("/v1/models", "models, their limits and prices", self.is_open),
            ("/metrics", "what Prometheus reads", is_here && settings.listen.ip().is_loopback()),
            ("/readyz", "whether new requests are served", is_here),
        ];
        let shown = pages.iter().filter(|(_, _, is_shown)| *is_shown);
        shown.map(|(path, about, _)| format!("<li><a href=\"{path}\">{path}</a>, {about}</li>\n")).collect()
    }
}

/// What to ask: of a model that knows arithmetic alone, that.
pub(super) fn question(catalog: &Catalog) -> &'static str {
    let knows_sums_alone =
        catalog.models.values().all(|model| model.specialty == Some(Specialty::Arithmetic));
    if knows_sums_alone { "What is 12+34*2?" } else { "Which day comes after Monday?" }
}

fn about(model: &Model) -> &'static str {
    match model.specialty {
        Some(Specialty::Arithmetic) => {
            "<br><span class=\"note\">a small one, for trying things out: it knows whole-number arithmetic alone</span>"
        }
        None => "",
    }
}

fn price(model: &Model) -> String {
    let list = model.tariff.map(|tariff| tariff.rates.list);
    let dollars = |price: Price| price.per_million_tokens;
    list.map_or_else(
        || "unknown".to_owned(),
        |list| format!("{} read, {} written", dollars(list.input), dollars(list.output)),
    )
}

/// A text as it may stand in a page.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
