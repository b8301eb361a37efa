//! The text of a statement, which nothing that a caller chose can be in.

use std::borrow::Cow;
use std::fmt::Write as _;

use sqlx::{Database, QueryBuilder, SqlSafeStr, SqlStr};

/// The text of a statement. It is put together of texts of the program and of numbers alone: a text that is made while the
/// program runs is no [`SqlPart`]. What callers say is bound as a value.
#[derive(Debug, Clone, Default)]
pub(crate) struct SqlText(Cow<'static, str>);

/// What may stand in the text of a statement.
pub(crate) trait SqlPart {
    /// Writes it at the end of a text.
    fn push_to(&self, text: &mut String);
}

impl SqlPart for &'static str {
    fn push_to(&self, text: &mut String) {
        text.push_str(self);
    }
}

impl SqlPart for SqlText {
    fn push_to(&self, text: &mut String) {
        text.push_str(&self.0);
    }
}

impl SqlPart for i64 {
    fn push_to(&self, text: &mut String) {
        let _ = write!(text, "{self}");
    }
}

impl SqlPart for usize {
    fn push_to(&self, text: &mut String) {
        let _ = write!(text, "{self}");
    }
}

impl From<&'static str> for SqlText {
    fn from(text: &'static str) -> SqlText {
        SqlText(Cow::Borrowed(text))
    }
}

impl From<&'static SqlText> for SqlText {
    fn from(text: &'static SqlText) -> SqlText {
        SqlText(Cow::Borrowed(&text.0))
    }
}

/// A text in which the parts stand for each `{}`, in their order.
pub(crate) fn sql(template: &'static str, parts: &[&dyn SqlPart]) -> SqlText {
    let (mut text, mut pieces) = (SqlText::default(), template.split("{}"));
    debug_assert_eq!(template.matches("{}").count(), parts.len(), "{template}");
    text.push(&pieces.next().unwrap_or_default());
    for (part, piece) in parts.iter().zip(pieces) {
        text.push(*part);
        text.push(&piece);
    }
    text
}

impl SqlText {
    /// These parts, with a separator between them.
    pub(crate) fn joined<P: SqlPart>(parts: impl IntoIterator<Item = P>, separator: &'static str) -> SqlText {
        let mut text = SqlText::default();
        for (place, part) in parts.into_iter().enumerate() {
            if place > 0 {
                text.push(&separator);
            }
            text.push(&part);
        }
        text
    }

    /// Its bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Makes room for so many bytes more.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        match &mut self.0 {
            Cow::Borrowed(text) => {
                let mut own = String::with_capacity(text.len() + bytes);
                own.push_str(text);
                self.0 = Cow::Owned(own);
            }
            Cow::Owned(text) => text.reserve(bytes),
        }
    }

    /// Adds a part at the end.
    pub(crate) fn push(&mut self, part: &dyn SqlPart) {
        part.push_to(self.0.to_mut());
    }

    /// The text as the driver takes it.
    pub(crate) fn into_driver<D: Database>(self) -> SqlStr
    where
        D::Arguments: Default,
    {
        match self.0 {
            Cow::Borrowed(text) => text.into_sql_str(),
            Cow::Owned(text) => QueryBuilder::<D>::new(text).into_sql(),
        }
    }

    /// For tests, which explain statements.
    #[cfg(test)]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_in_their_order() {
        let columns = sql("{}, count", &[&"id"]);
        let text = sql("SELECT {} FROM t WHERE n > {}{}", &[&columns, &-3_i64, &" FOR UPDATE"]);
        assert_eq!(text.as_str(), "SELECT id, count FROM t WHERE n > -3 FOR UPDATE");
        assert_eq!(SqlText::joined([1_usize, 2], ", $").as_str(), "1, $2");
    }
}
