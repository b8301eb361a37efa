//! `POST /v1/responses`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::chat::Finish;
use crate::gateway::{Flight, Receipt};
use crate::http::bodies::{Held, Room};
use crate::http::error::Problem;
use crate::http::events;
use crate::http::repeat::{self, Turn};
use crate::http::router::Service;
use crate::http::said::Said;
use crate::http::surface::{Call, Opened, Surface, open, run, with_limits};
use crate::tenant::Tenant;
use crate::units::{RequestId, Timestamp};

use super::keeping::Keeping;
use super::output::{Look, shown};
use super::parse::{self, Asked};
use super::recall::{Joins, Recalled};
use super::stream::Chunks;
use super::teller::Teller;
use super::{echo, recall};

/// The endpoint's name.
const ENDPOINT: &str = "responses";

/// Answers with a response, as one object or as events.
pub(in crate::http) async fn respond(
    State(service): State<Arc<Service>>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let room = request.extensions().get::<Room>().cloned();
    let Opened { tenant, headers, body } = open(&service, request).await?;
    let mut asked = parse::read(&body, &headers, &service.settings.efforts)?;
    // Before a conversation is claimed and read: an answer that was added to it is given again as it was.
    let ticket =
        match repeat::turn(&service, &tenant, &headers, repeat::Asked { of: ENDPOINT, body: &body }).await? {
            Turn::Run(ticket) => ticket,
            Turn::Said(response) => return Ok(with_limits(&service, &tenant, response)),
        };
    let Recalled { held, joins } = recall::conversation(&service, &tenant, &mut asked, room.as_ref()).await?;
    let claim = joins.as_ref().map(|joins| joins.claim.clone());
    let keeping = keeping(&service, &tenant, &mut asked, joins);
    let Asked { request, stream, look, echo, .. } = asked;
    let call = Call { headers, body, request, stream };
    let answered = run(&service, &tenant, call, ticket, &Responses { look, echo, keeping, held }).await;
    // Where no stream goes on with it, it is over.
    if let Some(claim) = claim.and_then(Arc::into_inner) {
        claim.give_back().await;
    }
    Ok(answered)
}

/// What is to be kept: the response where both the caller and the operator want that, and what lengthens a conversation.
fn keeping(service: &Service, tenant: &Tenant, asked: &mut Asked, joins: Option<Joins>) -> Keeping {
    let wanted = asked.store && service.responses.settings().store;
    Keeping {
        keeper: wanted.then(|| service.responses.clone()),
        joins,
        metrics: service.metrics.clone(),
        account: tenant.account.clone(),
        previous: asked.previous,
        input: std::mem::take(&mut asked.input).into(),
    }
}

/// OpenAI's responses.
struct Responses {
    look: Look,
    echo: Map<String, Value>,
    keeping: Keeping,
    /// Room for what it continues.
    held: Vec<Held>,
}

impl Responses {
    async fn whole(&self, receipt: &Receipt, said: Vec<Said>, created: Timestamp) -> Value {
        let mut teller = Teller::new(receipt.id, self.look.clone());
        let finish = receipt.choices.first().map_or(Finish::Stop, |choice| choice.finish);
        let said = said.into_iter().next().unwrap_or_default().finished(finish);
        for event in said.into_events() {
            teller.tell(event);
        }
        teller.end(echo::status(receipt));
        let (now, items) = (Timestamp::now(), teller.items());
        let frame = echo::frame(receipt.id, created, &receipt.model, self.keeping.stores(), &self.echo);
        let mut response = echo::ended(frame, receipt, shown(items), now);
        self.keeping.keep(receipt, now, &mut response, items).await;
        response
    }
}

impl Surface for Responses {
    fn endpoint(&self) -> &'static str {
        ENDPOINT
    }

    fn object<'a>(
        &'a self,
        receipt: &'a Receipt,
        said: Vec<Said>,
        created: Timestamp,
    ) -> BoxFuture<'a, Value> {
        self.whole(receipt, said, created).boxed()
    }

    fn chunks(&self, flight: &Flight, created: Timestamp) -> Box<dyn events::Chunks> {
        let chunks = Chunks::new(flight, created, self.look.clone(), &self.echo, self.keeping.clone());
        Box::new(chunks.holding(self.held.clone()))
    }

    fn problem(&self, problem: Problem, _: RequestId) -> Response {
        problem.into_response()
    }
}
