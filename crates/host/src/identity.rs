//! What makes the clocks of this process comparable with those of another: boot and time namespace.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use leasehold_node::Machine;

use crate::directory::if_found;

/// Reads the identity of this machine's clocks as this process sees them.
pub(crate) fn machine() -> io::Result<Machine> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let digits = text.trim().replace('-', "");
    let number = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32);
    let no_number = || io::Error::other(format!("boot id {:?} does not have 32 digits", text.trim()));
    let boot_id = number.ok_or_else(no_number)?.to_be_bytes();
    Ok(Machine { boot_id, time_namespace: time_namespace()?, offsets: offsets()? })
}

/// The inode of the time namespace; kernels without time namespaces have one for all.
fn time_namespace() -> io::Result<u64> {
    Ok(if_found(fs::metadata("/proc/self/ns/time"))?.map_or(0, |metadata| metadata.ino()))
}

/// The offsets of this process's clocks: two lines of a clock's name, seconds and nanoseconds.
fn offsets() -> io::Result<[i64; 4]> {
    let mut offsets = [0; 4];
    let text = if_found(fs::read_to_string("/proc/self/timens_offsets"))?.unwrap_or_default();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let at = match words.next() {
            Some("monotonic" | "1") => 0,
            Some("boottime" | "7") => 2,
            _ => continue,
        };
        for (offset, word) in offsets[at..at + 2].iter_mut().zip(words) {
            *offset = word
                .parse()
                .map_err(|_| io::Error::other(format!("time offset {word:?} is not a number")))?;
        }
    }
    Ok(offsets)
}
