//! Three to five nodes, each with a disk and clocks of its own, and a network that delays, loses and breaks. After every turn of a
//! node `checks` looks at what must always be true; each test adds the fact in its name.

mod actor;
mod checks;
mod disk;
mod net;
mod random;
mod world;

mod blank;
mod copies;
mod cut_writes;
mod elections;
mod forwarding;
mod gaps;
mod handover;
mod links;
mod members;
mod planted;
mod schedule;
mod strain;
mod versions;
mod waiting;
