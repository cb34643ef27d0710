//! The fields of a request over HTTP: the JSON of a body, read into the types of every request. Queries are tried with the target `service`.

use leasehold_api::{Object, request};
use serde::de::DeserializeOwned;

use crate::Shape;

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let seeds = [
        r#"{"label":"at \u00e4","ttl_ms":1e4,"nonce":"000102030405060708090a0b0c0d0e0f"}"#,
        r#"{"resource":"jobs/night","value":"v","wait_ms":1e4,"when_queued":"return"}"#,
        r#"{"resources":[{"resource":"a","mode":"slots","slots":3},{"resource":"b","mode":"shared"}]}"#,
        r#"{"a":1,"a":-1,"b":[1.5,18446744073709551616,true,null,{"c":{}}]}"#,
        r#"{"resource":"a","token":"17","key":"cursor","value_hex":"00ff","with_lease":true}"#,
    ];
    seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect()
}

pub(super) fn check(input: &[u8]) -> Shape {
    let open = read(input, |open: request::Open| Ok::<_, leasehold_api::ApiError>(open.check()));
    let acquire = read(input, request::Acquire::check);
    let write = read(input, |mut write: request::WriteRegister| write.value());
    open.and(acquire).and(write)
}

fn read<T: DeserializeOwned, C: std::fmt::Debug>(
    input: &[u8],
    check: impl FnOnce(T) -> Result<C, leasehold_api::ApiError>,
) -> Shape {
    match serde_json::from_slice::<Object<T>>(input).map(|Object(fields)| check(fields)) {
        Ok(Ok(checked)) => Shape::of(&checked),
        Ok(Err(error)) => {
            assert!(!error.message().is_empty(), "an error without words: {error:?}");
            Shape::of(&error)
        }
        Err(error) => Shape::of(&error.to_string().split('`').next()),
    }
}
