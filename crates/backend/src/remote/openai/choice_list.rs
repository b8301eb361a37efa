//! The choices of an event.

use std::fmt;
use std::iter::Chain;
use std::marker::PhantomData;
use std::{option, vec};

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

/// A list that has one entry in nearly all events. The first takes no memory of its own: a `Vec` makes room for four, more than the C
/// library's allocator keeps at hand.
#[derive(Debug)]
pub(super) struct ChoiceList<T> {
    first: Option<T>,
    more: Vec<T>,
}

impl<T> IntoIterator for ChoiceList<T> {
    type Item = T;
    type IntoIter = Chain<option::IntoIter<T>, vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.more)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ChoiceList<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ChoiceList<T>, D::Error> {
        from.deserialize_seq(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = ChoiceList<T>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ChoiceList<T>, A::Error> {
        let (first, mut more) = (list.next_element()?, Vec::new());
        while let Some(next) = list.next_element()? {
            more.push(next);
        }
        Ok(ChoiceList { first, more })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_all_that_a_list_has_in_its_order() {
        for text in ["[]", "[1]", "[1,2,3]"] {
            let list: ChoiceList<u32> = serde_json::from_str(text).unwrap();
            let expected: Vec<u32> = serde_json::from_str(text).unwrap();
            assert_eq!(list.into_iter().collect::<Vec<_>>(), expected);
        }
        assert!(serde_json::from_str::<ChoiceList<u32>>("{}").is_err());
    }
}
