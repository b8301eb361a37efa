//! One hook: asks it over HTTP, within its deadline, and counts what it says.

use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use reqwest::Client;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;
use sha2::Sha256;
use tokio::time::{Instant, timeout};

use crate::outbound::{self, AnswerReadError};
use stint_types::metrics::Metrics;
use stint_types::units::Timestamp;

use super::settings::{FailurePolicy, GuardrailSettings};
use super::verdict::{HookVerdict, Objection};

/// The longest answer of a hook.
const ANSWER_MAX: usize = 4 << 20;
/// Has the moment and the signature of a call.
const SIGNATURE: &str = "stint-signature";

/// A hook that can be called.
#[derive(Debug)]
pub(super) struct Hook {
    pub(super) settings: GuardrailSettings,
    client: Client,
    metrics: Arc<Metrics>,
}

/// What there is to judge, and how a rewrite of it is written.
pub(super) struct Question<'q> {
    pub(super) stage: &'static str,
    pub(super) body: &'q Value,
    /// The member that has the new texts, and that of each of them.
    pub(super) rewrite: (&'static str, &'static str),
    pub(super) count: usize,
}

impl Hook {
    pub(super) fn new(settings: GuardrailSettings, metrics: Arc<Metrics>) -> Result<Hook, reqwest::Error> {
        let client = outbound::client_builder().build()?;
        for stage in [("before", settings.before), ("after", settings.after)] {
            if let (stage, true) = stage {
                for verdict in ["allow", "refuse", "rewrite", "failed", "too_late"] {
                    metrics.guardrails.verdicts.with_label_values(&[&*settings.name, stage, verdict]);
                }
                metrics.guardrails.seconds.with_label_values(&[&*settings.name, stage]);
            }
        }
        Ok(Hook { settings, client, metrics })
    }

    /// What it says; where it says nothing, what the operator chose for that.
    pub(super) async fn ask(&self, question: Question<'_>) -> Result<HookVerdict, Objection> {
        let began = Instant::now();
        let answered = timeout(self.settings.deadline, self.call(&question)).await;
        let labels = &[&*self.settings.name, question.stage];
        self.metrics.guardrails.seconds.with_label_values(labels).observe(began.elapsed().as_secs_f64());
        let (word, verdict) = match answered {
            Ok(Ok(verdict)) => (verdict.as_str(), Some(verdict)),
            Ok(Err(why)) => {
                tracing::warn!(
                    guardrail = &*self.settings.name,
                    stage = question.stage,
                    why,
                    "a guardrail did not judge"
                );
                ("failed", None)
            }
            Err(_) => ("too_late", None),
        };
        self.count(question.stage, word);
        match (verdict, self.settings.on_failure) {
            (Some(HookVerdict::Refuse(message)), _) => Err(Objection::Refused(message)),
            (Some(verdict), _) => Ok(verdict),
            (None, FailurePolicy::Open) => Ok(HookVerdict::Allow),
            (None, FailurePolicy::Closed) => Err(Objection::Unjudged),
        }
    }

    /// Counts what it said, or that it did not.
    pub(super) fn count(&self, stage: &str, word: &str) {
        self.metrics.guardrails.verdicts.with_label_values(&[&*self.settings.name, stage, word]).inc();
    }

    async fn call(&self, question: &Question<'_>) -> Result<HookVerdict, String> {
        let body = question.body.to_string();
        let signature = self.sign(&body)?;
        let request = self.client.post(self.settings.url.clone()).header(CONTENT_TYPE, "application/json");
        // The address may be a secret.
        let failed = |error: reqwest::Error| error.without_url().to_string();
        let answer = request.header(SIGNATURE, signature).body(body).send().await.map_err(failed)?;
        if !answer.status().is_success() {
            return Err(format!("it answers {}", answer.status().as_u16()));
        }
        let text = outbound::read_up_to(answer, ANSWER_MAX).await.map_err(|error| match error {
            AnswerReadError::Broken(error) => failed(error),
            AnswerReadError::TooLong => format!("its answer is longer than {ANSWER_MAX} bytes"),
        })?;
        let (list, member) = question.rewrite;
        let verdict = HookVerdict::read(&text, list, member, question.count);
        verdict.ok_or_else(|| "its answer is no verdict".to_owned())
    }

    /// `t=` the moment in seconds, `v1=` the HMAC-SHA-256 of the moment, a full stop and the body.
    fn sign(&self, body: &str) -> Result<String, String> {
        let moment = Timestamp::now().0 / 1_000;
        let secret = self.settings.secret.as_bytes();
        let mut code = Hmac::<Sha256>::new_from_slice(secret).map_err(|error| error.to_string())?;
        code.update(format!("{moment}.").as_bytes());
        code.update(body.as_bytes());
        let digits: String = code.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(format!("t={moment},v1={digits}"))
    }
}
