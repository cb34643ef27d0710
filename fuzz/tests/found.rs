//! Inputs that were once found to fail, as short as they could be made.

use leasehold_fuzz::{driver, target};

fn must_be_fine(name: &str, input: &[u8]) {
    let target = target(name).expect("a target has this name");
    if let Err(failure) = driver::run_one(target, input) {
        panic!("{failure}");
    }
}

fn bytes(hex: &[&str]) -> Vec<u8> {
    let hex = hex.concat();
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// A record said that segments are kept from the one behind its own on. Opening removed the segment it stood in, and with it the log.
#[test]
fn a_log_that_keeps_nothing_is_damaged_and_not_removed() {
    let head = [
        "3700",                                                  // a batch of 55 bytes
        "01 08000000 4d00000000000000",                          // a head: 8 blocks, inode 77
        "0200000000000000 00 0000000000000000 0000000000000000", // term 2, no vote, nothing committed
        "00 0200000000000000 0100000000000000", // no snapshot, kept from segment 2 on, next is entry 1
    ];
    must_be_fine(
        "log-records",
        &bytes(&head.map(|piece| piece.replace(' ', "")).each_ref().map(String::as_str)),
    );
}

/// Indexes at the ends of their numbers, in heads that a checksum let through: one below and one above were computed.
#[test]
fn indexes_at_the_ends_of_their_numbers_are_damage() {
    let head = |snapshot: &str, next: &str| {
        let head = ["01080000004d00000000000000", "02000000000000000000000000000000000000000000000000"];
        [head[0], head[1], snapshot, "0100000000000000", next].concat()
    };
    let with_length = |record: &str| {
        let length = u8::try_from(record.len() / 2).expect("a short record");
        format!("{length:02x}00{record}")
    };
    let (zero, one, last) = ("0000000000000000", "0100000000000000", "ffffffffffffffff");
    // A snapshot up to `index`, in file 2, of no bytes.
    let snapshot = |index: &str| ["01", index, one, "0200000000000000", zero, "00000000"].concat();
    let taken = ["04", &snapshot(zero), one].concat();
    let entry = ["03", last, one, "00", one, "78"].concat();
    for records in [
        [head("00", zero), taken],
        [head(&["01", &snapshot(last)].concat(), one), String::new()],
        [head("00", last), entry],
    ] {
        let batches: Vec<String> = records.iter().map(|record| with_length(record)).collect();
        let batches: Vec<&str> = batches.iter().map(String::as_str).collect();
        must_be_fine("log-records", &bytes(&batches));
    }
}

/// A file with the number of a segment that there never is: the number below it was computed.
#[test]
fn a_segment_of_number_zero_is_not_ours() {
    must_be_fine("log-files", &[0; 14]);
}

/// Totals at the end of their numbers: the next lease that ended was one too many.
#[test]
fn a_table_whose_totals_are_at_their_end_is_damaged() {
    must_be_fine(
        "table",
        &bytes(&[
            "02120702207a01010420102008000304000202010101010101010101010101010101010106776f726b65724e070f0300",
            "010100010a6a6f62732f6e69676874030100020102010100010a6a6f62732f6e69676874030300020002050202020202",
            "0202020202020202020202020206776f726b65724e070f030101010000010101010a6a6f62732f6e69676874000b7420",
            "31302e302e302e318c270401000000010a6a6f62732f6e69676874000101030300000bec742031302e302e302e310301",
            "000000000101020101000106637572736f72023137030100010000ffffffffffffffffff0100",
        ]),
    );
}

/// A backup whose table was of a later version than its roster said, and than this release knows: it was restored, and what was restored
/// could not be read.
#[test]
fn a_backup_of_a_later_version_is_refused_before_anything_is_made() {
    let backup = [
        "4c484241434b5550010000009d65fd6c9d5820d3581738d534cf2f8c26ddd4ad11000000000000000300000000000000",
        "990100000000000000000000833f2daf030307080f01090107010800010e0002010107026e310e3132372e302e302e31",
        "3a3734323000010f090003a712070220780101042010200800060e000202010101010101010101010101010101010106",
        "776f726b65724e070f03000107010000050105020002050300030404040a6a6f62732f6e6967687403010106776f726b",
        "6572036f7073050006020600050806020202020202020202020202020202020206776f726b65724e070f030101070103",
        "0a6a6f62732f6e69676874060104706f6f6c0402017305030006000000030a6a6f62732f6e6967687400010206060000",
        "0b61742031302e302e302e310a0100000000000201030106776f726b6572030a02000004706f6f6c0103010204040100",
        "000b61742031302e302e302e3105020000000000010000000173000102050500010b742e302e302e31050301ac4e0300",
        "000000000101050206776f726b6572050c05036f70730869742068616e677300000402010100500000",
    ];
    must_be_fine("backup", &bytes(&backup));
}
