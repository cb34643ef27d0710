//! What a process does around a service: its configuration, its log, its signals, and word to whoever started it.
//!
//! Nothing of this is set up for any other command.

pub(crate) mod descriptors;
pub(crate) mod log;
pub(crate) mod notify;
pub(crate) mod port_file;
pub(crate) mod settings;
pub(crate) mod stopping;
