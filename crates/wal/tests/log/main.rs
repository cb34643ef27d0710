//! The log against a disk that loses power, fails, fills up and rots; and the same checks against mistakes put back.

mod checker;
mod crash;
mod damage;
mod faults;
mod model;
mod planted;
mod reserve;
mod usage;
