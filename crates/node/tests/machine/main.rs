//! The node with a disk that syncs when told to and clocks moved by hand. After every turn an oracle checks what must always
//! be true (see `oracle`); each test adds the fact in its name.

mod actor;
mod disk;
mod oracle;
mod world;

mod changes;
mod draining;
mod durability;
mod embedded;
mod founding;
mod gaps;
mod holds;
mod limits;
mod order;
mod plain;
mod reads;
mod requests;
mod schedule;
mod scripts;
mod snapshots;
mod time;
