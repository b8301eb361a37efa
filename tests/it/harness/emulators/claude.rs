//! What each Claude takes, by its name, as platform.claude.com/docs/en/build-with-claude has it (2026-11): adaptive-thinking, effort,
//! preserved-thinking, mid-conversation-system and the whats-new pages.
//!
//! Names that nobody has stand for a kind: `adaptive` takes no budgets and no sampling, `between` thinks between calls at the least,
//! `bound` accepts its thoughts only where it thought them.

/// How a model is kept from thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Off {
    /// By saying nothing of it, or by `disabled`.
    Unsaid,
    /// By `disabled` alone.
    Disabled,
    /// Between calls it cannot be.
    BetweenTools,
    /// Not at all.
    Never,
}

/// What one model takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claude {
    /// `thinking.type` `adaptive`, and words for the effort.
    pub(super) is_adaptive: bool,
    /// `thinking.type` `enabled`, with a budget.
    pub(super) takes_budgets: bool,
    /// A temperature, where it does not think.
    pub(super) samples: bool,
    pub(super) off: Off,
    pub(super) efforts: &'static [&'static str],
    /// Instructions and changes of its tools among the messages.
    pub(super) takes_late: bool,
    /// A choice that forces a call.
    pub(super) is_forced: bool,
}

/// The efforts of Opus 4.7 and all later ones.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// Those with budgets alone.
const BUDGETED: Claude = Claude {
    is_adaptive: false,
    takes_budgets: true,
    samples: true,
    off: Off::Unsaid,
    efforts: &[],
    takes_late: false,
    is_forced: true,
};
/// Those with words alone.
const ADAPTIVE: Claude = Claude {
    is_adaptive: true,
    takes_budgets: false,
    samples: false,
    off: Off::Unsaid,
    efforts: &EFFORTS,
    takes_late: false,
    is_forced: true,
};
/// Those of 4.6, which take both; their words by openrouter.ai/docs/guides/guides/model-migrations/claude-4-6.
const BOTH: Claude = Claude { is_adaptive: true, efforts: &["low", "medium", "high", "max"], ..BUDGETED };

/// Whose thoughts are bound to what stands before them.
const BOUND: [&str; 7] =
    ["fable-5-1", "fable-5-2", "mythos-5-1", "mythos-5-2", "opus-5-5", "sonnet-5-5", "haiku-5-5"];

/// Whether a model's thoughts are bound.
pub(super) fn is_bound(model: &str) -> bool {
    model.contains("bound") || BOUND.iter().any(|name| model.contains(name))
}

/// What the model of that name takes.
pub(super) fn of(model: &str) -> Claude {
    let has = |name: &str| model.contains(name);
    let late = Claude { takes_late: true, ..ADAPTIVE };
    match () {
        () if has("between") => Claude { off: Off::BetweenTools, is_forced: false, ..ADAPTIVE },
        () if has("bound") => late,
        () if has("adaptive") => ADAPTIVE,
        () if has("sonnet-4-6") || has("opus-4-6") => BOTH,
        () if has("opus-4-7") => ADAPTIVE,
        () if has("opus-4-8") => late,
        () if has("sonnet-5-5") => Claude { off: Off::BetweenTools, is_forced: false, ..late },
        () if has("opus-5-5") => Claude { off: Off::Never, is_forced: false, ..late },
        () if has("fable-5") || has("mythos-5") => {
            Claude { off: Off::Never, is_forced: !is_bound(model), ..late }
        }
        () if has("opus-5") || has("haiku-5-5") => Claude { off: Off::Disabled, ..late },
        () if has("sonnet-5") => Claude { off: Off::Disabled, ..ADAPTIVE },
        () => BUDGETED,
    }
}
