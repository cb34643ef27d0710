//! What makes the clocks of this process comparable with those of another: boot and time namespace.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use leasehold_node::Machine;

/// Reads the identity of this machine's clocks as this process sees them.
pub(crate) fn machine() -> io::Result<Machine> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let mut boot_id = [0; 16];
    if digits.len() != 32 {
        return Err(io::Error::other(format!("boot id {:?} does not have 32 digits", text.trim())));
    }
    for (byte, pair) in boot_id.iter_mut().zip(digits.chunks(2)) {
        let pair = std::str::from_utf8(pair).expect("hexadecimal digits are text");
        *byte = u8::from_str_radix(pair, 16).expect("both digits are hexadecimal");
    }
    Ok(Machine { boot_id, time_namespace: time_namespace()?, offsets: offsets()? })
}

/// The inode of the time namespace; kernels without time namespaces have one for all.
fn time_namespace() -> io::Result<u64> {
    match fs::metadata("/proc/self/ns/time") {
        Ok(metadata) => Ok(metadata.ino()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// The offsets of this process's clocks: two lines of a clock's name, seconds and nanoseconds.
fn offsets() -> io::Result<[i64; 4]> {
    let text = match fs::read_to_string("/proc/self/timens_offsets") {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok([0; 4]),
        Err(error) => return Err(error),
    };
    let mut offsets = [0; 4];
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
