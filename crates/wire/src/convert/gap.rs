//! Gaps as people see them.

use leasehold_core::gap::{GapCause, GapPart, GapSide, GapView, NameGaps, OutageView};
use leasehold_core::protocol::GapsView;

use super::{named_values, needed, record};
use crate::proto as pb;

record!(GapsView => GapsAnswer at "gaps"; names, next, outages);

record!(NameGaps => NameGaps at "gaps"; resource, gaps, known_for_ms as known_for);

record! {
    GapView => GapView at "gap";
    began_ago_ms as began_ago, ended_ago_ms as ended_ago, parts, leeway_ms as leeway, before, after,
}

record!(GapPart => GapPart at "gap"; cause, length_ms as length);

named_values!(
    GapCause => GapCause, "gap.cause", Detection, Grace, Revoke, CoolDown, Restore, Alarm, Queue, WarmUp, Outage
);

record!(GapSide => GapSide at "gap"; token, label, how);

record!(OutageView => OutageView at "gaps.outages"; ended_ago_ms as ended_ago, length_ms as length);

needed!(GapSide);
