//! Questions about the table.

use leasehold_core::protocol::{GapsOf, Query};

use super::field::name_prefix;
use super::{needed, variants};
use crate::proto as pb;

variants! {
    Query => Query { query: query::Query } at "read";
    Lease(resource) => Lease at "read.lease",
    Leases { prefix checked name_prefix, after, limit } => Leases(LeasesQuery) at "leases",
    Sessions { after, limit } => Sessions(SessionsQuery) at "sessions",
    History(resource) => History at "read.history",
    Check { resource, token } => Check(CheckQuery) at "check",
    Register { resource, key } => Register(RegisterQuery) at "register",
    Status => Status,
    Cluster => Cluster,
    Alarms => Alarms,
    Gaps { of, last_ms as last } => Gaps(GapsQuery) at "gaps",
}

variants! {
    GapsOf => gaps_query::Of;
    Name(resource) => Resource at "gaps.resource",
    Page { prefix checked name_prefix, after, limit } => Page(LeasesQuery) at "gaps",
}

needed!(GapsOf);
