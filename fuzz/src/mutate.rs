//! Changes that make one input out of others: what wires, disks and strangers do to bytes.

use crate::random::Random;

/// Longest input: every decoder is at its limits or its loops long before that.
pub const MAX_INPUT_BYTES: usize = 64 * 1024;
/// Most changes to one input. Few changes reach deep, many reach far.
const MAX_CHANGES: usize = 6;
/// Longest piece that is added, removed or moved at once.
const MAX_PIECE: usize = 64;

/// Numbers at which code goes wrong: ends of types, and what lies beside them.
const EDGES: [u64; 16] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0xffff_ffff_ffff_fffe,
    0xffff_ffff_ffff_ffff,
];

/// Makes a new input of one that is known; `others` lend pieces.
pub fn mutate(random: &mut Random, input: &[u8], others: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=random.below(MAX_CHANGES) {
        change(random, &mut bytes, others);
    }
    bytes.truncate(MAX_INPUT_BYTES);
    bytes
}

fn change(random: &mut Random, bytes: &mut Vec<u8>, others: &[Vec<u8>]) {
    match random.below(12) {
        0 | 1 => {
            let bit = random.below(8);
            at(random, bytes, |_, byte| *byte ^= 1 << bit);
        }
        2 => at(random, bytes, |random, byte| *byte = random.byte()),
        3 => at(random, bytes, |random, byte| *byte = byte.wrapping_add(*random.one_of(&[1, u8::MAX]))),
        4 => overwrite_number(random, bytes),
        5 => insert_varint(random, bytes),
        6 => {
            let (from, to) = piece(random, bytes);
            bytes.drain(from..to);
        }
        7 => {
            let (from, to) = piece(random, bytes);
            let copy = bytes[from..to].to_vec();
            insert(random, bytes, &copy);
        }
        8 => {
            let drawn: Vec<u8> = (0..=random.below(4)).map(|_| random.byte()).collect();
            insert(random, bytes, &drawn);
        }
        9 => {
            let keep = random.below(bytes.len() + 1);
            bytes.truncate(keep);
        }
        10 => lend(random, bytes, others, insert),
        _ => lend(random, bytes, others, |random, bytes, lent| {
            let start = random.below(bytes.len());
            for (byte, new) in bytes[start..].iter_mut().zip(lent) {
                *byte = *new;
            }
        }),
    }
}

fn at(random: &mut Random, bytes: &mut [u8], change: impl FnOnce(&mut Random, &mut u8)) {
    let place = random.below(bytes.len());
    if let Some(byte) = bytes.get_mut(place) {
        change(random, byte);
    }
}

/// A piece of the bytes, not longer than [`MAX_PIECE`].
fn piece(random: &mut Random, bytes: &[u8]) -> (usize, usize) {
    let from = random.below(bytes.len());
    let length = random.below(MAX_PIECE.min(bytes.len() - from) + 1);
    (from, from + length)
}

fn insert(random: &mut Random, bytes: &mut Vec<u8>, new: &[u8]) {
    let place = random.below(bytes.len() + 1);
    bytes.splice(place..place, new.iter().copied());
}

fn lend(
    random: &mut Random,
    bytes: &mut Vec<u8>,
    others: &[Vec<u8>],
    put: impl FnOnce(&mut Random, &mut Vec<u8>, &[u8]),
) {
    if others.is_empty() {
        return;
    }
    let other = random.one_of(others);
    let (from, to) = piece(random, other);
    put(random, bytes, &other[from..to]);
}

/// Writes a number near the end of a type over one, two, four or eight bytes, in either order.
fn overwrite_number(random: &mut Random, bytes: &mut [u8]) {
    let width = *random.one_of(&[1_usize, 2, 4, 8]);
    let number = random.one_of(&EDGES).to_le_bytes();
    let mut number = number[..width].to_vec();
    if random.below(2) == 0 {
        number.reverse();
    }
    let start = random.below(bytes.len());
    for (byte, new) in bytes.iter_mut().skip(start).zip(number) {
        *byte = new;
    }
}

/// Puts in a number as protobuf and the log's entries write it.
fn insert_varint(random: &mut Random, bytes: &mut Vec<u8>) {
    let mut rest = *random.one_of(&EDGES);
    let mut varint = Vec::new();
    while rest >= 0x80 {
        varint.push(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    varint.push(rest.to_le_bytes()[0]);
    let (from, _) = piece(random, bytes);
    let replaced = random.below(2).min(bytes.len() - from);
    bytes.splice(from..from + replaced, varint);
}
