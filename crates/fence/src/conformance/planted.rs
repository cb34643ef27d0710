//! The suite finds what it is there to find: a receiver in memory, right and with one mistake each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::*;
use crate::error::Stale;
use crate::receiver::{Answer, Mark, Seen};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    NoCheck,
    CheckThenAct,
    ComparesDoubles,
    RefusesEqual,
    SealRaisesNothing,
    RefusedAndWritten,
    AcceptedAndLost,
    WrongHighest,
}

#[derive(Debug, Default)]
struct Place {
    highest: Option<u64>,
    written: Vec<Written>,
}

#[derive(Debug, Clone)]
struct Memory {
    mistake: Mistake,
    places: Arc<Mutex<BTreeMap<String, Place>>>,
}

impl Memory {
    fn new(mistake: Mistake) -> Self {
        Self { mistake, places: Arc::default() }
    }

    fn with<T>(&self, name: &str, act: impl FnOnce(&mut Place) -> T) -> T {
        act(self.places.lock().expect("nobody panics with it").entry(name.to_owned()).or_default())
    }

    fn check(&self, place: &mut Place, stamp: &Stamp, raises: bool) -> Result<(), Error> {
        let (token, highest) = (stamp.token(), place.highest.unwrap_or(0));
        #[expect(clippy::cast_precision_loss, reason = "the mistake that is planted")]
        let is_stale = match self.mistake {
            Mistake::NoCheck => false,
            Mistake::ComparesDoubles => (token as f64) < (highest as f64),
            Mistake::RefusesEqual => token <= highest,
            _ => token < highest,
        };
        if is_stale {
            let highest = if self.mistake == Mistake::WrongHighest { token } else { highest };
            return Err(Stale { name: stamp.name().to_owned(), token, highest: Some(highest) }.into());
        }
        if raises {
            place.highest = Some(highest.max(token));
        }
        Ok(())
    }

    async fn write(&self, stamp: &Stamp, value: &str) -> Result<(), Error> {
        let name = stamp.name();
        // A way to the receiver, on which others go by.
        tokio::task::yield_now().await;
        if self.mistake == Mistake::CheckThenAct {
            self.with(name, |place| self.check(place, stamp, true))?;
            // A pause between looking and acting, longer for some than for others.
            for _ in 0..value.bytes().map(u64::from).sum::<u64>() % 13 {
                tokio::task::yield_now().await;
            }
            self.with(name, |place| place.written.push(written(stamp, value)));
            return Ok(());
        }
        self.with(name, |place| {
            let checked = self.check(place, stamp, true);
            let writes = match self.mistake {
                Mistake::RefusedAndWritten => true,
                Mistake::AcceptedAndLost => checked.is_ok() && value != "2",
                _ => checked.is_ok(),
            };
            if writes {
                place.written.push(written(stamp, value));
            }
            checked
        })
    }
}

fn written(stamp: &Stamp, value: &str) -> Written {
    Written { token: stamp.token(), value: value.to_owned() }
}

impl Receiver for Memory {
    fn place(&self) -> &'static str {
        "memory"
    }

    fn seal<'a>(&'a self, stamp: &'a Stamp) -> Answer<'a, ()> {
        let raises = self.mistake != Mistake::SealRaisesNothing;
        Box::pin(async move { self.with(stamp.name(), |place| self.check(place, stamp, raises)) })
    }

    fn look<'a>(&'a self, name: &'a str) -> Answer<'a, Seen> {
        let highest = self.with(name, |place| place.highest).map(|token| Mark { token, holder: None });
        Box::pin(async move { Ok(Seen { highest, refusals: None }) })
    }
}

impl Writer for Memory {
    async fn write(&mut self, stamp: &Stamp, value: &str) -> Result<(), Error> {
        Self::write(self, stamp, value).await
    }
}

impl Subject for Memory {
    type Writer = Self;

    fn receiver(&self) -> Arc<dyn Receiver> {
        Arc::new(self.clone())
    }

    async fn writer(&self) -> Result<Self, Trouble> {
        Ok(self.clone())
    }

    async fn written(&self, name: &str) -> Result<Vec<Written>, Trouble> {
        Ok(self.with(name, |place| place.written.clone()))
    }
}

async fn tried(mistake: Mistake) -> Result<Report, Violation> {
    run(&Memory::new(mistake), "t", Load::default()).await
}

#[tokio::test]
async fn a_right_receiver_passes_and_was_tried() {
    let report = tried(Mistake::None).await.expect("a right receiver passes");
    assert_eq!((report.races, report.failed, report.unknown), (8, 0, 0));
    assert!(report.accepted > 50 && report.stale_tried > 50 && report.refused > 50, "{report}");
}

#[tokio::test]
async fn every_mistake_is_found_and_named() {
    for (mistake, rule) in [
        (Mistake::NoCheck, "tokens never fall"),
        (Mistake::CheckThenAct, "tokens never fall"),
        (Mistake::ComparesDoubles, "tokens never fall"),
        (Mistake::RefusesEqual, "only a stale token is refused"),
        (Mistake::SealRaisesNothing, "a stale token is refused"),
        (Mistake::RefusedAndWritten, "tokens never fall"),
        (Mistake::AcceptedAndLost, "what is said is what was written"),
        (Mistake::WrongHighest, "only a stale token is refused"),
    ] {
        match tried(mistake).await {
            Err(Violation::Broken { rule: found, .. }) => assert_eq!(found, rule, "{mistake:?}"),
            other => panic!("{mistake:?}: {other:?}"),
        }
    }
}
