//! Makes grammars off the engine's thread, in bounded time, and keeps those that were wanted last.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use llguidance::{Matcher, ParserFactory};
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::{Failure, Fault, UnsupportedFeature};
use stint_engine::AnswerConstraint;
use stint_prompt::PromptFormat;
use stint_types::tasks::{AccountTurns, Turn};

use super::form::AnswerForm;
use super::matcher::GrammarMatcher;
use super::vocabulary;

/// Grammars that are kept.
const KEPT_MAX: usize = 32;

/// Grammars that are made at once, for callers who wait.
const AT_ONCE: usize = 2;

/// A caller waits so long for its grammar.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Room for what makes one, which calls itself for each `$ref` in a `$ref`. A schema of the largest size takes less than
/// half of it in a build without optimisation. No memory stands behind what is not used.
const STACK_BYTES: usize = 256 << 20;

/// The hash of a grammar's source.
type SourceHash = [u8; 32];

/// Makes the grammars of one model.
pub(in super::super) struct GrammarCompiler {
    shared: Arc<CompilerState>,
    /// Each owner has one made at a time.
    turns: AccountTurns<Option<String>>,
}

struct CompilerState {
    format: Arc<PromptFormat>,
    vocab: u32,
    /// Made when the first grammar is wanted: it takes memory and a moment.
    factory: OnceLock<Result<ParserFactory, String>>,
    /// What was used last is at the end.
    kept: Mutex<VecDeque<(SourceHash, GrammarMatcher)>>,
}

impl fmt::Debug for GrammarCompiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GrammarCompiler")
    }
}

impl GrammarCompiler {
    /// For a model that is spoken to so, with so many tokens.
    pub(in super::super) fn new(format: Arc<PromptFormat>, vocab: u32) -> GrammarCompiler {
        let kept = Mutex::new(VecDeque::new());
        let shared = CompilerState { format, vocab, factory: OnceLock::new(), kept };
        GrammarCompiler { shared: Arc::new(shared), turns: AccountTurns::new(AT_ONCE) }
    }

    /// The constraint of one answer of that form, for somebody of that owner's.
    ///
    /// # Errors
    /// Where no grammar can be made of it, or not in time.
    pub(in super::super) async fn compile(
        &self,
        form: AnswerForm,
        owner: Option<&str>,
    ) -> Result<AnswerConstraint, Failure> {
        let (member, hash) = (form.member, hash(&form));
        if let Some(known) = self.shared.find(&hash) {
            return Ok(AnswerConstraint::new(Box::new(known)));
        }
        let owner = owner.map(str::to_owned);
        let turn = timeout(TIME_MAX, self.turns.begin(&owner)).await;
        let Ok(Turn { own, of_all: _while_waiting }) = turn else { return Err(busy()) };
        let (tell, making) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        let work = move || {
            // For as long as it is made, whether or not somebody still waits: nothing can stop what makes it.
            let _own = own;
            // Nobody hears it who has hung up.
            drop(tell.send(shared.make(form, hash)));
        };
        let thread = thread::Builder::new().name("stint-grammar".into()).stack_size(STACK_BYTES);
        if thread.spawn(work).is_err() {
            return Err(busy());
        }
        match timeout(TIME_MAX, making).await {
            Ok(Ok(Ok(made))) => Ok(AnswerConstraint::new(Box::new(made))),
            Ok(Ok(Err(why))) => Err(refusal(member, &why)),
            Ok(Err(_)) => Err(refusal(member, "making its grammar failed")),
            Err(_) => Err(refusal(member, "making its grammar takes too long: make it simpler")),
        }
    }
}

#[cfg(test)]
impl GrammarCompiler {
    /// Makes a grammar here and now.
    pub(super) fn make_now(&self, form: AnswerForm) -> Result<GrammarMatcher, String> {
        let hash = hash(&form);
        self.shared.make(form, hash)
    }
}

fn hash(form: &AnswerForm) -> SourceHash {
    Sha256::digest(serde_json::to_string(&form.source).unwrap_or_default()).into()
}

impl CompilerState {
    fn find(&self, hash: &SourceHash) -> Option<GrammarMatcher> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == hash)?;
        let found = kept.remove(at)?;
        let fork = found.1.fork();
        kept.push_back(found);
        Some(fork)
    }

    fn make(&self, form: AnswerForm, hash: SourceHash) -> Result<GrammarMatcher, String> {
        if let Some(known) = self.find(&hash) {
            return Ok(known);
        }
        let factory = self.factory.get_or_init(|| vocabulary::factory(&self.format, self.vocab));
        let factory = factory.as_ref().map_err(Clone::clone)?;
        let parser = factory.create_parser(form.source).map_err(|error| summary(&format!("{error:#}")))?;
        let mut matcher = Matcher::new(Ok(parser));
        if !matcher.is_error() && matcher.is_stopped() {
            return Err("no answer fits it".into());
        }
        // The first mask is the dearest, and a grammar that has none is not worth keeping.
        matcher.compute_mask().map_err(|error| summary(&format!("{error:#}")))?;
        let made = GrammarMatcher::new(matcher);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back((hash, made.fork()));
        while kept.len() > KEPT_MAX {
            kept.pop_front();
        }
        Ok(made)
    }
}

/// What it is about, and of a pattern what is wrong with it. Behind that stand places in the source that we wrote.
fn summary(message: &str) -> String {
    if message.contains("coerce_one_of") {
        return "it cannot tell the cases of a oneOf apart: use anyOf".into();
    }
    // No token may begin an answer.
    if message.contains("NoExtensionBias") {
        return "no answer fits it: a $ref in it may lead back to itself".into();
    }
    let mut lines = message.lines().map(str::trim);
    let first = lines.next().unwrap_or_default();
    // A pattern of several lines stands below a rule.
    let pattern = lines.next().filter(|pattern| !pattern.starts_with("~~~"));
    match lines.find_map(|line| line.strip_prefix("error: ")) {
        Some(reason) => {
            let place = pattern.map(|pattern| format!(" in `{pattern}`")).unwrap_or_default();
            format!("{first} {reason}{place}")
        }
        None => first.to_owned(),
    }
}

/// The reason may quote the schema, so the caller alone is told it.
fn refusal(member: UnsupportedFeature, why: &str) -> Failure {
    let what = match member {
        UnsupportedFeature::Form => "its schema",
        _ => "the parameters of its tools",
    };
    let message = format!("this model cannot hold an answer to {what}");
    Failure::incapable(member, message.clone()).with_upstream_message(format!("{message}: {why}"))
}

fn busy() -> Failure {
    let message = "too many schemas are being read: try again shortly";
    let retry_after = Some(Duration::from_secs(1));
    Failure { retry_after, ..Failure::new(Fault::Overload, message).unsent().retry_elsewhere() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_cut_to_what_is_of_use_to_the_caller() {
        let check = |message: &str, expected: &str| assert_eq!(summary(message), expected);
        check("no such type\n  at 3(5)", "no such type");
        check(
            "invalid pattern: regex parse error:\n    a(b\n     ^\nerror: unclosed group",
            "invalid pattern: regex parse error: unclosed group in `a(b`",
        );
        let several = "regex parse error:\n~~~~~~\n1: a(\n    ^\n2: b\n~~~~~~\nerror: unclosed group";
        check(several, "regex parse error: unclosed group");
        check("NoExtensionBias", "no answer fits it: a $ref in it may lead back to itself");
        check("", "");
    }
}
