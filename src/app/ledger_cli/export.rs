//! `stint ledger export`: the ledger as CSV, one line for each resolution, and one more for what each other model took of it.

use std::io::{self, BufWriter, Write};

use stint_ledger::{ResolutionRecord, UsageSums};
use stint_storage::{Archive, StorageError};
use stint_types::units::{Money, Timestamp};

use super::super::output::is_broken_pipe;

const HEAD: &str = "number,request,account,model,end_user,tag,how,admitted_at,resolved_at,reserved_usd,spent_usd,\
                    overrun_usd,prompt_tokens,thinking_tokens,solution_tokens,overhead_tokens,other_tokens,\
                    tool_calls,outcome,episode,tool_calls_usd";

/// How a line came about that has what another model took of the request above it.
const PART_ROW: &str = "part";

/// Writes requests admitted from then until then to standard output.
pub(super) async fn export(
    archive: &mut Archive,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
) -> Result<(), StorageError> {
    let mut output = BufWriter::new(io::stdout().lock());
    let (mut begun, mut failure) = (false, None);
    let shown = archive
        .each(|record| {
            let head = if std::mem::replace(&mut begun, true) { Ok(()) } else { writeln!(output, "{HEAD}") };
            let admitted = record.resolved.admitted;
            let is_asked_for = from.is_none_or(|from| admitted >= from) && to.is_none_or(|to| admitted < to);
            let written = head.and_then(|()| if is_asked_for { write(&mut output, record) } else { Ok(()) });
            written.map_err(|error| io::Error::from(failure.insert(error).kind()))
        })
        .await;
    if failure.is_none() {
        // What could not be written is not what could not be read.
        shown?;
        let head = if begun { Ok(()) } else { writeln!(output, "{HEAD}") };
        failure = head.and_then(|()| output.flush()).err();
    }
    match failure {
        Some(source) if !is_broken_pipe(&source) => Err(StorageError::Output { source }),
        _ => Ok(()),
    }
}

/// The first line is the model's that answered; it has all that is not one model's.
fn write(output: &mut impl Write, record: &ResolutionRecord) -> io::Result<()> {
    let mut how = record.resolved.how.as_str();
    for (model, share) in record.resolved.shares() {
        writeln!(output, "{}", line(record, how, model.map_or("", |model| &**model), &share))?;
        how = PART_ROW;
    }
    Ok(())
}

fn line(record: &ResolutionRecord, how: &str, model: &str, share: &UsageSums) -> String {
    let (row, is_part) = (&record.resolved, how == PART_ROW);
    let name = |name: &Option<_>| name.as_deref().map(field).unwrap_or_default();
    let whole = |money: Money| if is_part { Money::ZERO } else { money }.to_string();
    let fields = [
        record.number.to_string(),
        row.id.to_string(),
        field(row.account.as_str()),
        field(model),
        name(&row.about.user),
        name(&row.about.tag),
        how.to_owned(),
        row.admitted.to_string(),
        row.at.to_string(),
        whole(record.held().money),
        share.spent.money.to_string(),
        share.overrun.to_string(),
        share.prompt.to_string(),
        share.spent.thinking.to_string(),
        share.solution.to_string(),
        share.overhead.to_string(),
        share.other.to_string(),
        share.spent.tool_calls.0.to_string(),
        field(&row.detail.outcome),
        row.about.episode.as_ref().map(|episode| field(episode.as_str())).unwrap_or_default(),
        whole(row.detail.tools_cost),
    ];
    fields.join(",")
}

/// A text as RFC 4180 has it; one that a spreadsheet would take for a formula begins with an apostrophe.
fn field(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\r', '\n']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_ledger::conformance::{amounts, dispatched, resolved};
    use stint_ledger::{ModelSpend, ResolutionKind};
    use stint_types::units::Tokens;

    #[test]
    fn what_another_model_took_is_a_line_below_its_requests() {
        let row = dispatched("acme", 10, amounts(100, 6));
        let mut resolved = resolved(&row, ResolutionKind::Settled, amounts(120, 5));
        let part =
            ModelSpend { money: Money(30), prompt: Tokens(7), other: Tokens(1), ..ModelSpend::default() };
        resolved.detail.parts.add(&"judge,1".into(), part);
        let id = row.id;
        let record = ResolutionRecord {
            number: 1,
            resolved,
            dispatched: Some(row),
            extended: Vec::new(),
            metered: Vec::new(),
        };
        let mut written = Vec::new();
        write(&mut written, &record).unwrap();
        let times = "1970-01-01T00:00:00.01Z,1970-01-01T00:00:00.011Z";
        let expected = format!(
            "1,{id},acme,reasoner,,,settled,{times},0.0000001,0.00000009,0.00000002,33,5,9,4,0,0,stop,,0\n\
             1,{id},acme,\"judge,1\",,,part,{times},0,0.00000003,0,7,0,0,0,1,0,stop,,0\n"
        );
        assert_eq!(String::from_utf8(written).unwrap(), expected);
        assert_eq!(HEAD.split(',').count(), expected.lines().next().unwrap().split(',').count());
    }

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
