//! What is said about numbers that do not fit together: both sides in figures, and what to change.

use core::fmt;

use crate::time::Millis;

/// What has to hold between the numbers of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inequality {
    /// The holder stops before another may begin: `margin >= clock bound + in-flight bound`.
    Safety,
    /// One lost request does not end the lease: `second attempt + round trip < ttl - margin`.
    Availability,
    /// Standing still does not end the lease: `renewal interval + pause + round trip < ttl - margin`.
    Pause,
}

impl Inequality {
    /// What people call it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Safety => "safety",
            Self::Availability => "availability",
            Self::Pause => "pause",
        }
    }
}

/// Numbers that do not fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NumbersError {
    /// Shorter than any lease may be.
    #[error("ttl of {ttl} is below the minimum of {min}; raise the ttl")]
    TtlTooShort {
        /// What was asked for.
        ttl: Millis,
        /// The limit.
        min: Millis,
    },
    /// Longer than the service takes.
    #[error("ttl of {ttl} is above the maximum of {max}; lower the ttl, or renew a shorter one")]
    TtlTooLong {
        /// What was asked for.
        ttl: Millis,
        /// The limit.
        max: Millis,
    },
    /// A length so short that the schedule would have no pauses.
    #[error("{what} of {length} is below the minimum of {min}; raise it, or leave it out")]
    TooShort {
        /// Which number.
        what: &'static str,
        /// What was asked for.
        length: Millis,
        /// The limit.
        min: Millis,
    },
    /// The safety inequality does not hold.
    #[error(
        "margin of {margin} is below clock bound + in-flight bound = {clock_bound} + {in_flight} = {needed}; \
         raise the margin to {needed} or lower a bound"
    )]
    Unsafe {
        /// The left side.
        margin: Millis,
        /// First part of the right side.
        clock_bound: Millis,
        /// Second part of the right side.
        in_flight: Millis,
        /// The right side.
        needed: Millis,
    },
    /// The availability inequality does not hold, and renewing more often helps.
    #[error(
        "one lost request ends the lease: 2 x {renew_every} + {round_trip} = {needed} is not below \
         ttl - margin = {ttl} - {margin} = {usable}; renew every {fitting} or sooner, or raise the ttl"
    )]
    RenewsTooSeldom {
        /// The renewal interval.
        renew_every: Millis,
        /// The round-trip bound.
        round_trip: Millis,
        /// The left side.
        needed: Millis,
        /// The ttl.
        ttl: Millis,
        /// The margin.
        margin: Millis,
        /// The right side.
        usable: Millis,
        /// The longest interval that fits.
        fitting: Millis,
    },
    /// The availability inequality does not hold however often the session is renewed.
    #[error(
        "one lost request ends the lease: 2 x {renew_every} + {round_trip} = {needed} is not below \
         ttl - margin = {ttl} - {margin} = {}; raise the ttl, or lower margin or round-trip bound",
        Difference(.ttl, .margin)
    )]
    NoRoomToRenew {
        /// The renewal interval.
        renew_every: Millis,
        /// The round-trip bound.
        round_trip: Millis,
        /// The left side.
        needed: Millis,
        /// The ttl.
        ttl: Millis,
        /// The margin.
        margin: Millis,
        /// The right side.
        usable: Millis,
    },
    /// The availability inequality does not hold for a schedule whose attempts are parts of the ttl.
    #[error(
        "one lost request ends the lease: second attempt at 7/8 of the ttl + round trip = {second} + {round_trip} = {needed} is not below \
         ttl - margin = {ttl} - {margin} = {}; raise the ttl, lower margin or round-trip bound, or renew evenly",
        Difference(.ttl, .margin)
    )]
    SecondTooLate {
        /// The second attempt.
        second: Millis,
        /// The round-trip bound.
        round_trip: Millis,
        /// The left side.
        needed: Millis,
        /// The ttl.
        ttl: Millis,
        /// The margin.
        margin: Millis,
        /// The right side.
        usable: Millis,
    },
    /// Work that needs so long to stop that one lost request would already stop it.
    #[error(
        "stopping takes up to {stop_within}, but after one lost request only ttl - margin - second attempt - round trip = \
         {ttl} - {margin} - {second} - {round_trip} = {left} are left; raise the ttl, renew more often, or stop faster"
    )]
    StopsTooSlowly {
        /// How long stopping takes.
        stop_within: Millis,
        /// The ttl.
        ttl: Millis,
        /// The margin.
        margin: Millis,
        /// The second attempt.
        second: Millis,
        /// The round-trip bound.
        round_trip: Millis,
        /// The right side.
        left: Millis,
    },
    /// A pause that the lease would not survive.
    #[error(
        "a pause of {pause} when a renewal is due ends the lease: {renew_every} + {pause} + {round_trip} = {needed} is not below \
         ttl - margin = {ttl} - {margin} = {usable}; raise the ttl, renew more often, or stand still for less long"
    )]
    PauseTooLong {
        /// How long the process may stand still.
        pause: Millis,
        /// The renewal interval.
        renew_every: Millis,
        /// The round-trip bound.
        round_trip: Millis,
        /// The left side.
        needed: Millis,
        /// The ttl.
        ttl: Millis,
        /// The margin.
        margin: Millis,
        /// The right side.
        usable: Millis,
    },
    /// An interval for a schedule that has its own.
    #[error(
        "a renewal interval of {renew_every} was given, but halves are renewed at half of the ttl; leave the interval out, or renew evenly"
    )]
    IntervalNotFree {
        /// What was asked for.
        renew_every: Millis,
    },
}

/// What is left of one length without another, below nothing too: whoever reads the subtraction can check it.
struct Difference<'a>(&'a Millis, &'a Millis);

impl fmt::Display for Difference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.1 > self.0 { "-" } else { "" };
        write!(f, "{sign}{}", Millis::new(self.0.get().abs_diff(self.1.get())))
    }
}

impl NumbersError {
    /// Which of the three inequalities does not hold, if it is one of them.
    pub const fn inequality(&self) -> Option<Inequality> {
        match self {
            Self::Unsafe { .. } => Some(Inequality::Safety),
            Self::RenewsTooSeldom { .. } | Self::NoRoomToRenew { .. } | Self::SecondTooLate { .. } => {
                Some(Inequality::Availability)
            }
            Self::PauseTooLong { .. } => Some(Inequality::Pause),
            Self::TtlTooShort { .. }
            | Self::TtlTooLong { .. }
            | Self::TooShort { .. }
            | Self::StopsTooSlowly { .. }
            | Self::IntervalNotFree { .. } => None,
        }
    }
}
