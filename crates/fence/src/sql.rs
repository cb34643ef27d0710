//! What the fences in SQL databases have in common.

#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(crate) mod held;

use crate::error::{Error, Trouble};
use crate::receiver::{KEPT_REFUSALS, Mark, Refused, Seen};

/// A refusal as tables keep it: its token, the highest one, the holder, and when.
pub(crate) type Row = (i64, i64, Option<String>, Option<String>);

/// What the tables have of a name: its token and holder, and the last refusals, the newest first.
pub(crate) fn seen(mark: Option<(i64, Option<String>)>, refusals: Vec<Row>) -> Seen {
    let highest = mark.map(|(token, holder)| Mark { token: token.cast_unsigned(), holder });
    let refusals = refusals.into_iter().map(|(token, highest, holder, at)| {
        let (token, highest) = (token.cast_unsigned(), highest.cast_unsigned());
        Refused { token, highest, holder, at }
    });
    Seen { highest, refusals: Some(refusals.collect()) }
}

/// How many refusals are kept, for a `LIMIT`.
pub(crate) fn kept() -> i64 {
    i64::try_from(KEPT_REFUSALS).expect("few are kept")
}

/// What the work returned, as an end of a write that is rolled back. The refusal of a further fence is a refusal of this write.
pub(crate) fn troubled(trouble: Trouble, failed: impl FnOnce(Trouble) -> Error) -> Error {
    match trouble.downcast::<Error>() {
        // Whatever is not known about something else, this transaction was rolled back.
        Ok(error) if matches!(*error, Error::Unknown { .. }) => failed(error),
        Ok(error) => *error,
        Err(trouble) => failed(trouble),
    }
}
