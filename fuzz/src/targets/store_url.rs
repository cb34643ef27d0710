//! The URL of a store. What was understood is written down and understood the same again.

use leasehold::Error;
use leasehold::testing::store_url;

use crate::Shape;

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
    match store_url(url) {
        Ok(written) => {
            let again = store_url(&written).expect("what was understood once is understood again");
            assert_eq!(again, written, "{written} is another store");
            let Some(path) = written.strip_prefix("dir:") else {
                return Shape::of(&written.split(',').collect::<Vec<_>>());
            };
            assert!(path.starts_with('/'), "a path that means another place elsewhere: {path}");
            Shape::of_words("a directory")
        }
        Err(Error::BadUrl { why, .. }) => Shape::of_words(&why),
        Err(other) => panic!("a URL is good or bad, and nothing else: {other}"),
    }
}
