//! The URL of a store. What was understood is written down and understood the same again.

use crate::Shape;
use crate::address::Address;
use crate::error::Error;

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let seeds = [
        "leasehold://localhost",
        "leasehold://db-1.example.com:1",
        "leasehold://127.0.0.1:65535,[::1]:7420,b",
        "leasehold://[fd00::7]:9000",
        "dir:/var/lib/x",
        "dir:relative/path",
        "leasehold://me:secret@a/path?query#fragment",
        "etcd://localhost",
    ];
    seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect()
}

pub(super) fn check(input: &[u8]) -> Shape {
    let Ok(url) = std::str::from_utf8(input) else { return Shape::of(&"no text") };
    match Address::parse(url) {
        Ok(address) => {
            let written = match &address {
                Address::Service(hosts) => {
                    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
                    format!("leasehold://{}", hosts.join(","))
                }
                Address::Directory(path) => {
                    assert!(path.is_absolute(), "a path that means another place elsewhere: {path:?}");
                    format!("dir:{}", path.display())
                }
            };
            let again = Address::parse(&written).expect("what was understood once is understood again");
            assert_eq!(again, address, "{written} is another store");
            Shape::of(&address)
        }
        Err(Error::BadUrl { why, .. }) => Shape::of_words(&why),
        Err(other) => panic!("a URL is good or bad, and nothing else: {other}"),
    }
}
