//! The books as CSV, one line for each resolution.

use std::io::{self, BufWriter, Write};

use crate::ledger::Record;
use crate::storage::{Archive, StorageError};
use crate::units::Timestamp;

const HEAD: &str = "number,request,account,model,end_user,tag,how,admitted_at,resolved_at,reserved_usd,spent_usd,\
                    overrun_usd,prompt_tokens,thinking_tokens,solution_tokens,overhead_tokens,other_tokens,\
                    tool_calls,outcome,episode,tool_calls_usd";

/// Writes requests admitted from then until then to standard output.
pub(super) async fn export(
    archive: &mut Archive,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
) -> Result<(), StorageError> {
    let mut output = BufWriter::new(io::stdout().lock());
    let (mut begun, mut is_gone) = (false, false);
    let shown = archive
        .each(|record| {
            if !std::mem::replace(&mut begun, true) {
                writeln!(output, "{HEAD}")?;
            }
            let admitted = record.resolved.admitted;
            let is_asked_for = from.is_none_or(|from| admitted >= from) && to.is_none_or(|to| admitted < to);
            let written = if is_asked_for { writeln!(output, "{}", line(record)) } else { Ok(()) };
            is_gone = matches!(&written, Err(error) if is_broken_pipe(error));
            written
        })
        .await;
    if is_gone {
        // Whoever reads it has had enough.
        return Ok(());
    }
    shown?;
    if !begun {
        let _ = writeln!(output, "{HEAD}");
    }
    match output.flush() {
        Err(source) if !is_broken_pipe(&source) => {
            Err(StorageError::Write { path: "standard output".into(), source })
        }
        _ => Ok(()),
    }
}

fn is_broken_pipe(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

fn line(record: &Record) -> String {
    let row = &record.resolved;
    let name = |name: &Option<_>| name.as_deref().map(field).unwrap_or_default();
    let fields = [
        record.number.to_string(),
        row.id.to_string(),
        field(row.account.as_str()),
        name(&row.about.model),
        name(&row.about.user),
        name(&row.about.tag),
        row.how.word().to_owned(),
        row.admitted.to_string(),
        row.at.to_string(),
        record.held().money.to_string(),
        row.spent.money.to_string(),
        row.overrun.money.to_string(),
        row.detail.prompt.to_string(),
        row.spent.thinking.to_string(),
        row.detail.solution.to_string(),
        row.detail.overhead.to_string(),
        row.detail.other.to_string(),
        row.spent.tool_calls.0.to_string(),
        field(&row.detail.outcome),
        row.about.episode.as_ref().map(|episode| field(episode.as_str())).unwrap_or_default(),
        row.detail.tools_cost.to_string(),
    ];
    fields.join(",")
}

/// A text as RFC 4180 has it; one that a spreadsheet would take for a formula begins with an apostrophe.
fn field(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    match text.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(field(text), expected);
    }

    #[test]
    fn a_field_is_quoted_where_it_must_be_and_never_a_formula() {
        check("acme/alice", "acme/alice");
        check("a,b", "\"a,b\"");
        check("say \"hi\"\n", "\"say \"\"hi\"\"\n\"");
        check("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0");
        check("@SUM(1,2)", "\"'@SUM(1,2)\"");
        check("-1+1", "'-1+1");
        check("\t=1", "'\t=1");
    }
}
