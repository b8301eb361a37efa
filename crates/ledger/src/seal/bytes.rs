//! The bytes of a record that a seal hashes; `chain` describes the format.

use crate::rows::{Amounts, DispatchEntry, RequestScope, ResolutionEntry};
use stint_types::chat::ToolCounts;
use stint_types::units::{EpisodeId, Money};

use super::record::ResolutionRecord;

/// The canonical bytes of a record.
pub(crate) struct SealBytes(pub(crate) Vec<u8>);

impl SealBytes {
    pub(crate) fn of(record: &ResolutionRecord) -> SealBytes {
        let mut bytes = SealBytes(Vec::with_capacity(512));
        bytes.resolved(record.number, &record.resolved);
        if let Some(row) = &record.dispatched {
            bytes.dispatched(row);
        }
        for step in &record.extended {
            bytes.0.push(b'E');
            bytes.whole(u64::from(step.step));
            bytes.optional(step.model.as_deref(), SealBytes::text);
            bytes.amounts(step.more);
        }
        for step in &record.metered {
            bytes.0.push(b'M');
            bytes.whole(u64::from(step.step));
            bytes.amounts(step.spent);
        }
        bytes
    }

    fn resolved(&mut self, number: i64, row: &ResolutionEntry) {
        self.0.push(b'S');
        self.signed(number);
        self.0.extend(row.id.as_bytes());
        self.text(row.account.as_str());
        self.about(&row.about);
        self.signed(row.admitted.0);
        self.signed(row.at.0);
        self.text(row.how.as_str());
        self.amounts(row.spent);
        self.amounts(row.overrun);
        for tokens in [row.detail.prompt, row.detail.overhead, row.detail.solution, row.detail.other] {
            self.whole(tokens.0);
        }
        self.text(&row.detail.outcome);
        self.step(&row.about, &row.detail.tools, row.detail.tools_cost);
        for (model, part) in row.detail.parts.iter() {
            self.0.push(b'P');
            self.text(model);
            self.whole(part.money.0);
            for tokens in [part.thinking, part.prompt, part.overhead, part.solution, part.other] {
                self.whole(tokens.0);
            }
        }
    }

    fn dispatched(&mut self, row: &DispatchEntry) {
        self.0.push(b'R');
        self.text(row.account.as_str());
        self.about(&row.about);
        self.amounts(row.held);
        self.optional(row.prices, |bytes, prices| {
            bytes.whole(prices.input.per_million_tokens.0);
            bytes.whole(prices.output.per_million_tokens.0);
        });
        self.text(row.if_abandoned.as_str());
        self.signed(row.admitted.0);
        self.signed(row.expires.0);
        self.step(&row.about, &row.tools, row.tools_cost);
    }

    /// Nothing, where it is none: rows from before there were episodes hash as they did then.
    fn step(&mut self, about: &RequestScope, tools: &ToolCounts, cost: Money) {
        let episode = about.episode.as_ref();
        if episode.is_none() && tools.each.is_empty() && cost == Money::ZERO {
            return;
        }
        self.0.push(b'A');
        self.optional(episode.map(EpisodeId::as_str), SealBytes::text);
        self.whole(cost.0);
        self.whole(u64::try_from(tools.each.len()).unwrap_or(u64::MAX));
        for (tool, count) in &tools.each {
            self.text(tool);
            self.whole(count.0);
        }
        if about.beside_turns {
            self.0.push(b'B');
        }
    }

    fn about(&mut self, about: &RequestScope) {
        for name in [&about.model, &about.user, &about.tag] {
            self.optional(name.as_deref(), SealBytes::text);
        }
    }

    fn amounts(&mut self, amounts: Amounts) {
        for count in [amounts.money.0, amounts.thinking.0, amounts.tool_calls.0] {
            self.whole(count);
        }
    }

    fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut SealBytes, T)) {
        self.0.push(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn text(&mut self, text: &str) {
        self.whole(u64::try_from(text.len()).unwrap_or(u64::MAX));
        self.0.extend(text.as_bytes());
    }

    fn whole(&mut self, number: u64) {
        self.0.extend(number.to_be_bytes());
    }

    fn signed(&mut self, number: i64) {
        self.0.extend(number.to_be_bytes());
    }
}
