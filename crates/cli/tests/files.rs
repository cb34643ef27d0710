//! Backups, restores, recoveries and checks with real processes and real files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

#[path = "files/backups.rs"]
mod backups;
#[path = "files/earlier.rs"]
mod earlier;
#[path = "files/full.rs"]
mod full;
#[path = "files/killed.rs"]
mod killed;
#[path = "files/lives.rs"]
mod lives;
#[path = "files/stage.rs"]
mod stage;
#[path = "files/versions.rs"]
mod versions;
