//! The fence in object stores: on the S3 interface of moto, and in memory where steps have to be put in order.
//! `cargo test -p leasehold-fence --test object_store`

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

#[path = "object_store/common.rs"]
mod common;
#[path = "object_store/conformance.rs"]
mod conformance;
#[path = "object_store/doubts.rs"]
mod doubts;
#[path = "object_store/faulty.rs"]
mod faulty;
#[path = "object_store/guide.rs"]
mod guide;
#[path = "object_store/http.rs"]
mod http;
#[path = "object_store/order.rs"]
mod order;
#[path = "object_store/s3.rs"]
mod s3;
#[path = "object_store/wrong_ways.rs"]
mod wrong_ways;
