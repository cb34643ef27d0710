//! Which words of a command are its keys, and how many words it needs.
//!
//! A script has to name its keys before it runs: a cluster looks at them, and refuses the whole script when they are not in one
//! place. A command with too few words would fail only when those before it have been carried out, so it is found here.
//!
//! What it deliberately does not do: it does not know every command. Those that may not be in a script are missing, those that
//! would take the fence with them (`FLUSHDB`), and those whose keys are hidden among options (`SORT`); the caller names the keys of the latter.

use redis::{Arg, Cmd};

use super::Unfit;

/// The interpreter spreads the words of a command on a stack of 8,000.
pub(super) const MAX_WORDS: usize = 7_000;

/// Where the keys of a command are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// It has none.
    None,
    /// The first word after its name.
    First,
    /// The first two words.
    Two,
    /// All words.
    All,
    /// Every other word, each with its value.
    Pairs,
    /// All words but the first.
    Later,
    /// The first word, then a number, then so many.
    Counted,
}

/// A command, its least number of words with its name, and its keys. In the order of the alphabet, for they are looked up.
const COMMANDS: [(&str, usize, Keys); 103] = [
    ("APPEND", 3, Keys::First),
    ("BITFIELD", 2, Keys::First),
    ("BITOP", 4, Keys::Later),
    ("COPY", 3, Keys::Two),
    ("DECR", 2, Keys::First),
    ("DECRBY", 3, Keys::First),
    ("DEL", 2, Keys::All),
    ("EXISTS", 2, Keys::All),
    ("EXPIRE", 3, Keys::First),
    ("EXPIREAT", 3, Keys::First),
    ("GEOADD", 5, Keys::First),
    ("GEOSEARCHSTORE", 8, Keys::Two),
    ("GET", 2, Keys::First),
    ("GETDEL", 2, Keys::First),
    ("GETEX", 2, Keys::First),
    ("GETSET", 3, Keys::First),
    ("HDEL", 3, Keys::First),
    ("HEXISTS", 3, Keys::First),
    ("HGET", 3, Keys::First),
    ("HGETALL", 2, Keys::First),
    ("HINCRBY", 4, Keys::First),
    ("HINCRBYFLOAT", 4, Keys::First),
    ("HLEN", 2, Keys::First),
    ("HMGET", 3, Keys::First),
    ("HMSET", 4, Keys::First),
    ("HSET", 4, Keys::First),
    ("HSETNX", 4, Keys::First),
    ("INCR", 2, Keys::First),
    ("INCRBY", 3, Keys::First),
    ("INCRBYFLOAT", 3, Keys::First),
    ("LINDEX", 3, Keys::First),
    ("LINSERT", 5, Keys::First),
    ("LLEN", 2, Keys::First),
    ("LMOVE", 5, Keys::Two),
    ("LPOP", 2, Keys::First),
    ("LPUSH", 3, Keys::First),
    ("LPUSHX", 3, Keys::First),
    ("LRANGE", 4, Keys::First),
    ("LREM", 4, Keys::First),
    ("LSET", 4, Keys::First),
    ("LTRIM", 4, Keys::First),
    ("MGET", 2, Keys::All),
    ("MSET", 3, Keys::Pairs),
    ("MSETNX", 3, Keys::Pairs),
    ("PERSIST", 2, Keys::First),
    ("PEXPIRE", 3, Keys::First),
    ("PEXPIREAT", 3, Keys::First),
    ("PFADD", 2, Keys::First),
    ("PFMERGE", 2, Keys::All),
    ("PSETEX", 4, Keys::First),
    ("PTTL", 2, Keys::First),
    ("PUBLISH", 3, Keys::None),
    ("RENAME", 3, Keys::Two),
    ("RENAMENX", 3, Keys::Two),
    ("RESTORE", 4, Keys::First),
    ("RPOP", 2, Keys::First),
    ("RPOPLPUSH", 3, Keys::Two),
    ("RPUSH", 3, Keys::First),
    ("RPUSHX", 3, Keys::First),
    ("SADD", 3, Keys::First),
    ("SCARD", 2, Keys::First),
    ("SDIFFSTORE", 3, Keys::All),
    ("SET", 3, Keys::First),
    ("SETBIT", 4, Keys::First),
    ("SETEX", 4, Keys::First),
    ("SETNX", 3, Keys::First),
    ("SETRANGE", 4, Keys::First),
    ("SINTERSTORE", 3, Keys::All),
    ("SISMEMBER", 3, Keys::First),
    ("SMEMBERS", 2, Keys::First),
    ("SMOVE", 4, Keys::Two),
    ("SPOP", 2, Keys::First),
    ("SPUBLISH", 3, Keys::First),
    ("SREM", 3, Keys::First),
    ("STRLEN", 2, Keys::First),
    ("SUNIONSTORE", 3, Keys::All),
    ("TOUCH", 2, Keys::All),
    ("TTL", 2, Keys::First),
    ("TYPE", 2, Keys::First),
    ("UNLINK", 2, Keys::All),
    ("XACK", 4, Keys::First),
    ("XADD", 5, Keys::First),
    ("XAUTOCLAIM", 6, Keys::First),
    ("XCLAIM", 6, Keys::First),
    ("XDEL", 3, Keys::First),
    ("XLEN", 2, Keys::First),
    ("XSETID", 3, Keys::First),
    ("XTRIM", 4, Keys::First),
    ("ZADD", 4, Keys::First),
    ("ZCARD", 2, Keys::First),
    ("ZDIFFSTORE", 4, Keys::Counted),
    ("ZINCRBY", 4, Keys::First),
    ("ZINTERSTORE", 4, Keys::Counted),
    ("ZPOPMAX", 2, Keys::First),
    ("ZPOPMIN", 2, Keys::First),
    ("ZRANGE", 4, Keys::First),
    ("ZRANGESTORE", 5, Keys::Two),
    ("ZREM", 3, Keys::First),
    ("ZREMRANGEBYLEX", 4, Keys::First),
    ("ZREMRANGEBYRANK", 4, Keys::First),
    ("ZREMRANGEBYSCORE", 4, Keys::First),
    ("ZSCORE", 3, Keys::First),
    ("ZUNIONSTORE", 4, Keys::Counted),
];

/// The words of a command, its name first.
pub(super) fn words(command: &Cmd) -> Result<Vec<&[u8]>, Unfit> {
    let words: Option<Vec<&[u8]>> = command
        .args_iter()
        .map(|word| match word {
            Arg::Simple(word) => Some(word),
            _ => None,
        })
        .collect();
    let words = words.ok_or(Unfit::Cursor)?;
    let Some(name) = words.first() else { return Err(Unfit::Empty) };
    if words.len() > MAX_WORDS {
        return Err(Unfit::TooLong { command: shown(name), words: words.len() });
    }
    Ok(words)
}

/// The keys among the words of a command.
pub(super) fn keys<'a>(words: &[&'a [u8]]) -> Result<Vec<&'a [u8]>, Unfit> {
    let name = words.first().copied().ok_or(Unfit::Empty)?;
    let upper = name.to_ascii_uppercase();
    let found = COMMANDS.binary_search_by(|(other, ..)| other.as_bytes().cmp(&upper));
    let Ok(found) = found else { return Err(Unfit::KeysNotKnown { command: shown(name) }) };
    let (_, least, keys) = COMMANDS[found];
    let too_short = || Unfit::TooShort { command: shown(name), words: words.len(), least };
    if words.len() < least {
        return Err(too_short());
    }
    Ok(match keys {
        Keys::None => Vec::new(),
        Keys::First => vec![words[1]],
        Keys::Two => words[1..3].to_vec(),
        Keys::All => words[1..].to_vec(),
        Keys::Pairs if words.len().is_multiple_of(2) => return Err(too_short()),
        Keys::Pairs => words[1..].iter().step_by(2).copied().collect(),
        Keys::Later => words[2..].to_vec(),
        Keys::Counted => {
            let count = std::str::from_utf8(words[2]).ok().and_then(|count| count.parse::<usize>().ok());
            let keys =
                count.and_then(|count| words.get(3..3usize.checked_add(count)?)).ok_or_else(too_short)?;
            std::iter::once(words[1]).chain(keys.iter().copied()).collect()
        }
    })
}

/// For people: a name is short, whatever was passed as one.
fn shown(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    name.chars().filter(|letter| !letter.is_control()).take(40).collect()
}

/// The slot of a key in a cluster: a hash of what stands between the first `{` and the next `}`, if anything does, else of all of it.
pub(super) fn slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').map(|open| &key[open + 1..]);
    let tag = tag.and_then(|rest| Some(&rest[..rest.iter().position(|byte| *byte == b'}')?]));
    let hashed = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
    crc16(hashed) % 16_384
}

/// The remainder that clusters hash by: polynomial 0x1021, from zero, the highest bit first.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys_of(line: &str) -> Result<Vec<String>, String> {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let keys = keys(&words).map_err(|unfit| unfit.to_string())?;
        Ok(keys.into_iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect())
    }

    #[test]
    fn commands_stand_in_the_order_of_the_alphabet() {
        assert!(COMMANDS.is_sorted_by(|one, other| one.0 < other.0));
    }

    #[test]
    fn keys_are_found_whatever_the_case_of_the_name() {
        for (line, expected) in [
            ("set a 1", vec!["a"]),
            ("SET a 1", vec!["a"]),
            ("DEL a b c", vec!["a", "b", "c"]),
            ("MSET a 1 b 2", vec!["a", "b"]),
            ("RENAME a b", vec!["a", "b"]),
            ("LMOVE a b LEFT RIGHT", vec!["a", "b"]),
            ("BITOP AND a b c", vec!["a", "b", "c"]),
            ("ZUNIONSTORE a 2 b c WEIGHTS 1 2", vec!["a", "b", "c"]),
            ("PUBLISH channel words", vec![]),
        ] {
            assert_eq!(keys_of(line).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn what_would_fail_half_way_is_refused_before() {
        for (line, said) in [
            ("SET a", "SET has 2 words and needs at least 3"),
            ("MSET a 1 b", "MSET has 4 words and needs at least 3"),
            ("ZUNIONSTORE a 3 b c", "ZUNIONSTORE has 5 words and needs at least 4"),
            ("FLUSHDB", "the keys of FLUSHDB are not known here"),
        ] {
            let error = keys_of(line).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
    }

    #[test]
    fn words_and_keys_are_those_that_a_server_tells() {
        let server = leasehold_kit::redis::Server::start_fast().unwrap();
        let url = leasehold_kit::Receiver::url(&server);
        let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
        for (name, least, keys) in COMMANDS {
            let mut info = redis::cmd("COMMAND");
            let told: Vec<(String, i64, redis::Value, usize, i64, usize)> =
                told(&info.arg("INFO").arg(name).query(&mut connection).unwrap());
            let [(_, words, flags, first, last, step)] = &told[..] else { panic!("{name}: {told:?}") };
            assert_eq!(words.unsigned_abs(), least as u64, "{name}");
            assert!(!format!("{flags:?}").contains("noscript"), "{name}");
            let expected = match keys {
                Keys::None => (0, 0, 0),
                Keys::First | Keys::Counted => (1, 1, 1),
                Keys::Two => (1, 2, 1),
                Keys::All => (1, -1, 1),
                Keys::Pairs => (1, -1, 2),
                Keys::Later => (2, -1, 1),
            };
            assert_eq!((*first, *last, *step), expected, "{name}");
        }
    }

    /// What the server tells has more columns in later versions; the first six are in all.
    fn told(reply: &redis::Value) -> Vec<(String, i64, redis::Value, usize, i64, usize)> {
        let redis::Value::Array(rows) = reply else { panic!("{reply:?}") };
        let row = |row: &redis::Value| {
            let redis::Value::Array(columns) = row else { panic!("{row:?}") };
            redis::from_redis_value(redis::Value::Array(columns[..6].to_vec())).unwrap()
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot(b"{user1000}.following"), slot(b"{user1000}.followers"));
        assert_eq!(slot(b"foo{}{bar}"), crc16(b"foo{}{bar}") % 16_384);
        assert_eq!(slot(b"foo{{bar}}zap"), crc16(b"{bar") % 16_384);
        assert_eq!(slot(b"foo{bar}{zap}"), crc16(b"bar") % 16_384);
    }
}
