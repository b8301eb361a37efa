//! Tool calls by tool, as a column has them: `{"search":3}`.

use crate::sql::decode_error;
use stint_types::chat::ToolCounts;
use stint_types::units::Count;

/// Nothing, where none is told apart. PostgreSQL has no zeros in texts, and a name that has one must not stop entries.
pub(super) fn to_json(tools: &ToolCounts) -> Option<String> {
    if tools.each.is_empty() {
        return None;
    }
    let each = tools.each.iter();
    let each = each.map(|(tool, count)| (tool.replace('\0', "\u{FFFD}"), (count.0).into()));
    Some(serde_json::Value::Object(each.collect()).to_string())
}

/// So many calls altogether, of which the text tells some apart.
pub(super) fn from_json(all: Count, text: Option<&str>) -> Result<ToolCounts, sqlx::Error> {
    let each = text.map(serde_json::from_str).transpose();
    let each = each.map_err(decode_error)?.unwrap_or_default();
    Ok(ToolCounts { all, each })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut tools = ToolCounts::default();
        assert_eq!(to_json(&tools), None);
        tools.add(&"search".into(), Count(3));
        tools.add(&"\"\n\u{1F600}".into(), Count(u64::MAX));
        assert_eq!(from_json(tools.all, to_json(&tools).as_deref()).unwrap(), tools);
        from_json(tools.all, Some("{\"search\":-1}")).unwrap_err();
        let mut tools = ToolCounts::default();
        tools.add(&"a\0b".into(), Count(1));
        assert_eq!(to_json(&tools).as_deref(), Some("{\"a\u{FFFD}b\":1}"));
    }
}
