//! What can go wrong with a generation: whose fault it was, and whether trying again can help.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use stint_types::units::Tokens;

/// Whose fault a failure was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The caller asked for something impossible.
    Caller,
    /// The backend is broken or unreachable.
    Backend,
    /// The backend has no room now.
    Overload,
    /// The backend refuses our credentials or our account.
    Credential,
    /// It took too long.
    Timeout,
    /// This gateway lacks something itself, such as room for another open file.
    Gateway,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Fault; 6] =
        [Fault::Caller, Fault::Backend, Fault::Overload, Fault::Credential, Fault::Timeout, Fault::Gateway];

    /// Whether it shows something about the target.
    pub(crate) fn is_of_target(self) -> bool {
        !matches!(self, Fault::Caller | Fault::Gateway)
    }

    /// The word in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Fault::Caller => "caller",
            Fault::Backend => "backend",
            Fault::Overload => "overload",
            Fault::Credential => "credential",
            Fault::Timeout => "timeout",
            Fault::Gateway => "gateway",
        }
    }
}

/// Whether trying again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Retry {
    /// No: the request itself is at fault, or its time is up.
    Never,
    /// Not here, but perhaps another target or another model does it.
    Elsewhere,
    /// It may pass by itself.
    Again,
}

/// What a request asks for that a model cannot do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsupportedFeature {
    /// The service itself.
    Service,
    /// To read what it is to read.
    Prompt,
    /// To think so much, or not at all.
    Thinking,
    /// An answer in that form.
    Form,
    /// To call tools.
    Tools,
    /// A forced tool call (`tool_choice`).
    Choice,
    /// Penalties, or other odds for some tokens.
    Penalties,
    /// The chances of the answer's tokens.
    Logprobs,
    /// So many answers at once (`n`).
    Answers,
}

/// A failed generation. It shows and prints itself for the log: with its [reason](Failure::reason), and without what was
/// [the upstream said](Failure::upstream_message).
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", ReasonSuffix(reason.as_deref()))]
pub struct Failure {
    /// Whose fault it was.
    pub fault: Fault,
    /// What happened, in our own words, which quote nobody: for the log.
    pub message: String,
    /// The message of the upstream or the model's template. That may quote the prompt, so it is for the caller
    /// alone, and only where it is the caller's fault: see [`Failure::for_caller`].
    pub upstream_message: Option<Box<str>>,
    /// Why the upstream refused, for the log alone.
    pub reason: Option<Box<UpstreamReason>>,
    /// How much the upstream says that it read, where it answered and its answer is of no use.
    pub read: Option<NonZeroU32>,
    /// True if nothing can have been billed: nothing reached a model, or its upstream gave up before anything was written.
    pub unsent: bool,
    /// True if the upstream itself reported it in an answer that had not begun: it bills no more than it has counted by then.
    pub reported: bool,
    /// Whether trying again can help.
    pub retry: Retry,
    /// When the backend wants to be asked again.
    pub retry_after: Option<Duration>,
    /// The code of the error that the caller is to see, where it is the caller's fault.
    pub code: Option<&'static str>,
    /// What the upstream calls its refusal, where that is the caller's fault and has no code of ours.
    pub upstream_code: Option<Box<UpstreamErrorCode>>,
    /// What was asked for that the model cannot do, where that is why.
    pub unsupported: Option<UnsupportedFeature>,
    /// The caller's member that has a value which cannot be, where one has.
    pub member: Option<&'static str>,
}

/// The code of a generation that failed since its engine did: another one is started by itself.
pub const ENGINE_RESTARTING: &str = "engine_restarting";

/// The code of a call whose upstream sent nothing in its time. The message is for the caller too.
pub const FIRST_BYTE_TIMEOUT: &str = "upstream_timeout";

/// The code of a call that was not made since the upstream has asked for a pause.
pub const UPSTREAM_RATE_LIMITED: &str = "rate_limit_exceeded";

/// The code of a request that is larger than all that the upstream takes: in tokens a minute, or in bytes.
pub const REQUEST_TOO_LARGE: &str = "request_too_large";

/// The code of a call that ended without an answer. The message is for the caller too.
pub const NO_ANSWER: &str = "no_answer";

/// The code of what a model cannot do.
const INCAPABLE: &str = "model_not_capable";

impl Failure {
    /// A failure of that kind.
    pub fn new(fault: Fault, message: impl Into<String>) -> Failure {
        let retry = match fault {
            Fault::Caller => Retry::Never,
            Fault::Credential => Retry::Elsewhere,
            Fault::Backend | Fault::Overload | Fault::Timeout | Fault::Gateway => Retry::Again,
        };
        let message = message.into();
        Failure {
            fault,
            message,
            upstream_message: None,
            reason: None,
            read: None,
            unsent: false,
            reported: false,
            retry,
            retry_after: None,
            code: None,
            upstream_code: None,
            unsupported: None,
            member: None,
        }
    }

    /// A call with a member that cannot have its value, and that never reached a model. The message says what it must be.
    pub fn invalid_member(member: &'static str, message: impl Into<String>) -> Failure {
        Failure { member: Some(member), ..Failure::new(Fault::Caller, message).unsent() }
    }

    /// A call that a model cannot serve, and that never reached it.
    pub fn incapable(feature: UnsupportedFeature, message: impl Into<String>) -> Failure {
        let failure = Failure::new(Fault::Caller, message).unsent().code(INCAPABLE);
        Failure { unsupported: Some(feature), ..failure }
    }

    /// The same, for a call that never reached a model.
    #[must_use]
    pub fn unsent(self) -> Failure {
        Failure { unsent: true, ..self }
    }

    /// The same, where trying the same target again cannot help.
    #[must_use]
    pub fn retry_elsewhere(self) -> Failure {
        Failure { retry: self.retry.min(Retry::Elsewhere), ..self }
    }

    /// The same, where what this target refuses another may take: a request that is refused for no reason with a name of its
    /// own.
    #[must_use]
    pub fn allow_retry_elsewhere(self) -> Failure {
        let is_open = self.fault == Fault::Caller && self.code.is_none();
        Failure { retry: if is_open { Retry::Elsewhere } else { self.retry }, ..self }
    }

    /// The same, with the code that the caller is to see.
    #[must_use]
    pub fn code(self, code: &'static str) -> Failure {
        Failure { code: Some(code), ..self }
    }

    /// The same, with a message of the upstream.
    #[must_use]
    pub fn with_upstream_message(self, words: impl Into<String>) -> Failure {
        Failure { upstream_message: Some(words.into().into_boxed_str()), ..self }
    }

    /// The same, with what of the upstream's refusal may be logged.
    #[must_use]
    pub fn with_reason(self, reason: Option<UpstreamReason>) -> Failure {
        Failure { reason: reason.map(Box::new), ..self }
    }

    /// The same, where the upstream counted so much as read.
    #[must_use]
    pub fn with_read(self, read: Option<Tokens>) -> Failure {
        let counted = read.and_then(|read| NonZeroU32::new(u32::try_from(read.0).unwrap_or(u32::MAX)));
        Failure { read: counted, ..self }
    }

    /// True if an upstream refused what was asked before a model saw it, and not for its length or its content: another may take it.
    pub fn is_unnamed_refusal(&self) -> bool {
        let unnamed = self.code.is_none() && self.unsupported.is_none();
        self.fault == Fault::Caller && self.unsent && self.retry == Retry::Elsewhere && unnamed
    }

    /// Whether another attempt may end better, here or elsewhere: the fault is not the caller's, as far as that can be known.
    pub fn allows_another_attempt(&self) -> bool {
        let is_open = self.is_unnamed_refusal() || self.code == Some(REQUEST_TOO_LARGE);
        self.retry > Retry::Never && (self.fault != Fault::Caller || is_open)
    }

    /// What the caller may read: the upstream's message if it is the caller's fault, else our own.
    pub fn for_caller(&self) -> &str {
        let told = self.upstream_message.as_deref().filter(|_| self.fault == Fault::Caller);
        told.unwrap_or(&self.message)
    }
}

/// What an upstream calls its refusal, in OpenAI's form: words as codes and names of members are, and no sentences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpstreamErrorCode {
    /// Its code, such as `content_filter`.
    pub code: Option<String>,
    /// The member of the request that it is about.
    pub param: Option<String>,
}

/// What of an upstream's refusal may be logged, on one line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpstreamReason {
    /// The beginning of its message. Nobody knows what an upstream quotes in it, so it is logged only where the operator
    /// asked for that.
    pub message: Option<String>,
    /// Its code and its type, with commas; empty where it has none.
    pub codes: String,
}

impl fmt::Display for UpstreamReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.message, &*self.codes) {
            (Some(message), "") => write!(f, "\"{message}\""),
            (Some(message), codes) => write!(f, "\"{message}\" ({codes})"),
            (None, codes) => f.write_str(codes),
        }
    }
}

/// A reason behind a message.
struct ReasonSuffix<'a>(Option<&'a UpstreamReason>);

impl fmt::Display for ReasonSuffix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure {
            fault,
            message,
            upstream_message: _,
            reason,
            read,
            unsent,
            reported,
            retry,
            retry_after,
            code,
            upstream_code,
            unsupported: lack,
            member,
        } = self;
        f.debug_struct("Failure")
            .field("fault", fault)
            .field("message", message)
            .field("reason", reason)
            .field("read", read)
            .field("unsent", unsent)
            .field("reported", reported)
            .field("retry", retry)
            .field("retry_after", retry_after)
            .field("code", code)
            .field("upstream_code", upstream_code)
            .field("lack", lack)
            .field("member", member)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(fault: Fault, for_caller: &str) {
        let failure =
            Failure::new(fault, "the upstream answered 400").with_upstream_message("no such word: canary");
        assert_eq!(failure.for_caller(), for_caller);
        assert!(!format!("{failure} {failure:?} {failure:#?}").contains("canary"));
    }

    #[test]
    fn what_an_upstream_said_is_shown_to_the_caller_whose_fault_it_was_and_to_no_log() {
        check(Fault::Caller, "no such word: canary");
        for fault in [Fault::Backend, Fault::Overload, Fault::Credential, Fault::Timeout, Fault::Gateway] {
            check(fault, "the upstream answered 400");
        }
        assert_eq!(Failure::new(Fault::Caller, "too long").for_caller(), "too long");
    }

    #[test]
    fn what_one_upstream_refuses_another_may_take_unless_its_length_or_content_is_why() {
        let refused = || Failure::new(Fault::Caller, "no").unsent();
        assert!(refused().allow_retry_elsewhere().allows_another_attempt());
        assert!(!refused().allows_another_attempt());
        let long = refused().code("context_length_exceeded").allow_retry_elsewhere();
        assert!(!long.allows_another_attempt());
        let large = Failure { retry: Retry::Elsewhere, ..refused().code(REQUEST_TOO_LARGE) };
        assert!(large.allows_another_attempt());
        assert!(Failure::new(Fault::Credential, "401").allows_another_attempt());
    }

    #[test]
    fn a_reason_is_for_the_log_and_not_for_the_caller() {
        let failure = Failure::new(Fault::Backend, "the upstream answered 404")
            .with_reason(Some(UpstreamReason { message: None, codes: "model_not_found".into() }));
        assert_eq!(failure.to_string(), "the upstream answered 404: model_not_found");
        assert_eq!(failure.for_caller(), "the upstream answered 404");
    }
}
