//! Bounds of numbers in a schema, made such that the grammar's maker keeps them. It computes with 64-bit floats and whole
//! numbers, overflows at the ends of those, and passes the bound itself where it is excluded and whole.

use serde_json::{Map, Value};

/// The whole numbers up to here are exact in a 64-bit float, and so in what reads JSON.
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;

/// A bound that is excluded moves by so much at least.
const STEP: f64 = 1e-9;

/// Narrows the bounds of a schema, those of the schemas in it aside, that would not be kept: what fits the new one fits the old one.
///
/// # Errors
/// Where nothing would be left, or no number that is exact.
pub(super) fn narrow(schema: &mut Map<String, Value>) -> Result<(), String> {
    for (name, sign) in
        [("minimum", 1.0), ("maximum", -1.0), ("exclusiveMinimum", 1.0), ("exclusiveMaximum", -1.0)]
    {
        let Some(bound) = schema.get(name).and_then(Value::as_f64) else { continue };
        // As if it were a lower one.
        let lower = bound * sign;
        if lower > WHOLE_MAX {
            return Err(format!("its `{name}` is beyond {WHOLE_MAX}, where numbers are no longer exact"));
        }
        let is_excluded = name.starts_with("exclusive") && lower.fract() == 0.0;
        let kept = if is_excluded && lower > -WHOLE_MAX {
            (lower + STEP).max(lower.next_up())
        } else {
            lower.max(-WHOLE_MAX)
        };
        if kept.to_bits() != lower.to_bits() {
            schema.insert(name.to_owned(), Value::from(kept * sign));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(mut schema: Value, expected: &Value) {
        narrow(schema.as_object_mut().unwrap()).unwrap();
        assert_eq!(schema, *expected);
    }

    #[test]
    fn bounds_beyond_exact_numbers_become_the_last_exact_ones() {
        let most = 9_007_199_254_740_991i64;
        check(
            json!({ "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX }),
            &json!({ "type": "integer", "minimum": -(most as f64), "maximum": most as f64 }),
        );
        check(json!({ "maximum": 1e300 }), &json!({ "maximum": most as f64 }));
        check(json!({ "exclusiveMinimum": -1e300 }), &json!({ "exclusiveMinimum": -(most as f64) }));
        check(json!({ "minimum": -3, "maximum": 9 }), &json!({ "minimum": -3, "maximum": 9 }));
    }

    #[test]
    fn a_range_without_exact_numbers_is_refused_by_its_name() {
        for (name, bound) in
            [("minimum", 1e19), ("exclusiveMinimum", 1e300), ("maximum", -1e19), ("exclusiveMaximum", -1e19)]
        {
            let mut schema = json!({ name: bound });
            let why = narrow(schema.as_object_mut().unwrap()).unwrap_err();
            assert!(why.contains(name), "{why}");
        }
    }

    #[test]
    fn whole_bounds_that_are_excluded_move_inwards() {
        check(
            json!({ "exclusiveMinimum": 0, "exclusiveMaximum": 0.5 }),
            &json!({ "exclusiveMinimum": 1e-9, "exclusiveMaximum": 0.5 }),
        );
        check(json!({ "exclusiveMaximum": 0 }), &json!({ "exclusiveMaximum": -1e-9 }));
        let large = 4_503_599_627_370_496.0;
        check(json!({ "exclusiveMinimum": large }), &json!({ "exclusiveMinimum": large + 1.0 }));
    }
}
