//! JSON objects that are said where they are made.

/// A value that is written as a JSON object with these fields, in this order. A field without a value has that of the variable of its name.
///
/// Unlike `serde_json::json!` it sorts nothing and copies nothing.
macro_rules! object {
    ($($(#[$attribute:meta])* $field:ident $(: $value:expr)?),+ $(,)?) => {{
        #[expect(non_camel_case_types, reason = "the type of a field is called like the field")]
        mod fields {
            #[derive(serde::Serialize)]
            pub(super) struct Object<$($field),+> {
                $($(#[$attribute])* pub(super) $field: $field),+
            }
        }
        fields::Object { $($field $(: $value)?),+ }
    }};
}
