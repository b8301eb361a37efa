//! The members of a JSON object, taken one by one; what is wrong or left over is named.

use serde_json::{Map, Value};

use stint_types::units::nearest;

use super::error::{ApiError, codes};

/// Among so many members it costs less to compare each name than to hash the one that is looked for.
const COMPARED_MAX: usize = 16;

/// The most bytes of a text that is to end an answer: every byte of an answer is compared with all of them.
pub(super) const STOP_BYTES_MAX: usize = 1024;

/// The texts that are to end an answer; nothing where one is none, or too long.
pub(super) fn stop_texts(list: &[Value]) -> Option<Vec<String>> {
    let text = |item: &Value| item.as_str().filter(|text| text.len() <= STOP_BYTES_MAX).map(str::to_owned);
    list.iter().map(text).collect()
}

/// An object whose members are taken out as they are understood.
#[derive(Debug)]
pub(super) struct Fields {
    path: String,
    /// True if each member is a header, whose name the path begins.
    headers: bool,
    members: Map<String, Value>,
}

impl Fields {
    /// The members of the request's body.
    pub(super) fn from_body(members: Map<String, Value>) -> Fields {
        Fields { path: String::new(), headers: false, members }
    }

    /// The members of the object at `path`.
    ///
    /// # Errors
    /// 400 where it is no object.
    pub(super) fn from_value(path: impl Into<String>, value: Value) -> Result<Fields, ApiError> {
        let path = path.into();
        match value {
            Value::Object(members) => Ok(Fields { path, headers: false, members }),
            _ => Err(ApiError::invalid(Some(&path), "must be an object")),
        }
    }

    /// What headers say whose names begin alike.
    pub(super) fn from_headers(prefix: &str, members: Map<String, Value>) -> Fields {
        Fields { path: prefix.to_owned(), headers: true, members }
    }

    /// True if each member is a header.
    pub(super) fn are_headers(&self) -> bool {
        self.headers
    }

    /// The full name of a member, as errors give it.
    pub(super) fn full_name(&self, key: &str) -> String {
        if self.headers {
            return format!("{}{}", self.path, key.replace('_', "-"));
        }
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn wrong(&self, key: &str, must: &str) -> ApiError {
        ApiError::invalid(Some(&self.full_name(key)), format!("must be {must}"))
    }

    fn missing(&self, key: &str, must: &str) -> ApiError {
        ApiError::missing(&self.full_name(key), must)
    }

    /// The names of the members that are still there, where these are the caller's own.
    pub(super) fn names(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    /// True if all were taken.
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The member, unless absent or null.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.remove(key).filter(|value| !value.is_null())
    }

    /// The member, whatever it is. Most that are looked for are not there.
    fn remove(&mut self, key: &str) -> Option<Value> {
        if self.has(key) { self.members.shift_remove(key) } else { None }
    }

    fn has(&self, key: &str) -> bool {
        if self.members.len() > COMPARED_MAX {
            return self.members.contains_key(key);
        }
        self.members.keys().any(|name| name == key)
    }

    /// True if the member is there and null; it is taken out then.
    pub(super) fn take_null(&mut self, key: &str) -> bool {
        let null = self.peek(key).is_some_and(Value::is_null);
        if null {
            self.members.shift_remove(key);
        }
        null
    }

    /// A whole number, zero or more.
    pub(super) fn integer(&mut self, key: &str) -> Result<Option<u64>, ApiError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        value.as_u64().map(Some).ok_or_else(|| self.wrong(key, "a whole number, zero or more"))
    }

    /// A number between two bounds.
    pub(super) fn number(&mut self, key: &str, least: f64, most: f64) -> Result<Option<f64>, ApiError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let number = value.as_f64().filter(|number| (least..=most).contains(number));
        number.map(Some).ok_or_else(|| self.wrong(key, &format!("a number from {least} to {most}")))
    }

    /// A number from zero to a bound, in the precision of samplers.
    #[expect(clippy::cast_possible_truncation, reason = "samplers work in single precision")]
    pub(super) fn fraction(&mut self, key: &str, most: f64) -> Result<Option<f32>, ApiError> {
        Ok(self.number(key, 0.0, most)?.map(|number| number as f32))
    }

    /// The `model` member, which must be there.
    pub(super) fn model(&mut self) -> Result<String, ApiError> {
        let name = self.text("model")?.filter(|name| !name.is_empty());
        name.ok_or_else(|| {
            ApiError::invalid(Some("model"), "is missing; GET /v1/models lists them")
                .with_code(codes::MISSING_REQUIRED_PARAMETER)
        })
    }

    /// A text.
    pub(super) fn text(&mut self, key: &str) -> Result<Option<String>, ApiError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(key, "a string")),
        }
    }

    /// A text that must be there.
    pub(super) fn require(&mut self, key: &str) -> Result<String, ApiError> {
        self.text(key)?.ok_or_else(|| self.missing(key, "a string"))
    }

    /// A text that must be there and say something.
    pub(super) fn require_filled(&mut self, key: &str) -> Result<String, ApiError> {
        let text = self.require(key)?;
        if text.is_empty() { Err(self.wrong(key, "a string that is not empty")) } else { Ok(text) }
    }

    /// True or false.
    pub(super) fn boolean(&mut self, key: &str) -> Result<Option<bool>, ApiError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(self.wrong(key, "true or false")),
        }
    }

    /// A list.
    pub(super) fn list(&mut self, key: &str) -> Result<Option<Vec<Value>>, ApiError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(self.wrong(key, "a list")),
        }
    }

    /// The members of a member.
    pub(super) fn fields(&mut self, key: &str) -> Result<Option<Fields>, ApiError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        Fields::from_value(self.full_name(key), value).map(Some)
    }

    /// The members of a member that must be there.
    pub(super) fn require_fields(&mut self, key: &str) -> Result<Fields, ApiError> {
        self.fields(key)?.ok_or_else(|| self.missing(key, "an object"))
    }

    /// The member as it stands.
    pub(super) fn peek(&self, key: &str) -> Option<&Value> {
        if self.has(key) { self.members.get(key) } else { None }
    }

    /// Puts a member back, or another in its place.
    pub(super) fn put(&mut self, key: &str, value: Value) {
        self.members.insert(key.to_owned(), value);
    }

    /// Takes out all that is left.
    pub(super) fn take_rest(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.members)
    }

    /// All that is left, where nothing is to follow.
    pub(super) fn into_members(self) -> Map<String, Value> {
        self.members
    }

    /// Takes out every member of these names, as it is.
    pub(super) fn take_all(&mut self, keys: &[&str]) -> Map<String, Value> {
        let taken = keys.iter().filter_map(|&key| self.take(key).map(|value| (key.to_owned(), value)));
        taken.collect()
    }

    /// Nothing may be left.
    ///
    /// # Errors
    /// 400 that names a member that is not known.
    pub(super) fn finish(self) -> Result<(), ApiError> {
        self.finish_with_known(&[])
    }

    /// Nothing may be left; what is left may have been meant as one of the `known`.
    ///
    /// # Errors
    /// 400 that names a member that is not known.
    pub(super) fn finish_with_known(self, known: &[&str]) -> Result<(), ApiError> {
        let left = self.members.iter().find(|(_, value)| !value.is_null());
        match left {
            None => Ok(()),
            Some((key, _)) => {
                let name = self.full_name(key);
                let remedy = match nearest(key, known.iter().copied()) {
                    Some(near) => format!("did you mean {}?", self.full_name(near)),
                    None => "leave it out".to_owned(),
                };
                Err(ApiError::invalid(Some(&name), format!("is not known here; {remedy}"))
                    .with_code(codes::UNKNOWN_PARAMETER))
            }
        }
    }
}
