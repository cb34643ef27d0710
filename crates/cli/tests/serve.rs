//! `leasehold serve` as a real process: what it refuses, what it says, how it ends, and the other commands against it.
//!
//! Every service has a port that the system chose and a directory of its own. Nothing here waits for a fixed time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

#[path = "serve/alarms.rs"]
mod alarms;
#[path = "serve/clients.rs"]
mod clients;
#[path = "serve/configuration.rs"]
mod configuration;
#[path = "serve/contact.rs"]
mod contact;
#[path = "serve/directories.rs"]
mod directories;
#[path = "serve/ending.rs"]
mod ending;
#[path = "serve/freezing.rs"]
mod freezing;
#[path = "serve/monitoring.rs"]
mod monitoring;
#[path = "serve/outage.rs"]
mod outage;
#[path = "serve/saying.rs"]
mod saying;
#[path = "serve/stage.rs"]
mod stage;
