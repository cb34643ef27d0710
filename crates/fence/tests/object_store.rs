//! The fence in object stores: on the S3 interface of moto, and in memory where steps have to be put in order.
//! `cargo test -p leasehold-fence object_store::`

mod common;
mod conformance;
mod doubts;
mod faulty;
mod guide;
mod http;
mod order;
mod s3;
mod wrong_ways;
