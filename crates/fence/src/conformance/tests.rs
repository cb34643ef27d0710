//! The suite finds what it is there to find: a receiver in memory, right and with one mistake each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

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
    /// Not against the contract, which allows failures in a race; but nothing is shown by it.
    LetsNobodyIn,
}

#[derive(Debug, Default)]
struct Place {
    highest: Option<u64>,
    written: Vec<Written>,
}

#[derive(Debug, Clone)]
struct Memory {
    mistake: Mistake,
    /// How long a request is on its way, and how long its answer.
    way: Duration,
    places: Arc<Mutex<BTreeMap<String, Place>>>,
}

impl Memory {
    fn new(mistake: Mistake) -> Self {
        Self { mistake, way: Duration::ZERO, places: Arc::default() }
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
            return Err(Stale::of(stamp, Some(highest)).into());
        }
        if raises {
            place.highest = Some(highest.max(token));
        }
        Ok(())
    }

    /// The newer a holder, the nearer it is: what all send at once arrives from the newest first. No two requests take equally long.
    async fn travel(&self, stamp: &Stamp, value: &str) {
        let nearness = u32::try_from(stamp.token() % 16 + 1).expect("it is small");
        let delays = value.bytes().map(u32::from).sum::<u32>() % 5 + 1;
        match self.way {
            // Others go by all the same.
            Duration::ZERO => tokio::task::yield_now().await,
            way => tokio::time::sleep(way * delays / nearness).await,
        }
    }

    async fn write(&self, stamp: &Stamp, value: &str) -> Result<(), Error> {
        self.travel(stamp, value).await;
        let answer = self.arrived(stamp, value).await;
        if !self.way.is_zero() {
            self.travel(stamp, value).await;
        }
        answer
    }

    async fn arrived(&self, stamp: &Stamp, value: &str) -> Result<(), Error> {
        let name = stamp.name();
        let is_new = name.contains("race") && stamp.token() > BEYOND_DOUBLES;
        if self.mistake == Mistake::LetsNobodyIn && is_new {
            return Err(Error::failed("memory", "planned"));
        }
        if self.mistake == Mistake::CheckThenAct {
            self.with(name, |place| self.check(place, stamp, true))?;
            // A pause between looking and acting, longer for some than for others; behind a network it is a way back and forth.
            for _ in 0..value.bytes().map(u64::from).sum::<u64>() % 13 {
                tokio::task::yield_now().await;
            }
            if !self.way.is_zero() {
                self.travel(stamp, value).await;
                self.travel(stamp, value).await;
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
        Box::pin(async move {
            self.travel(stamp, "").await;
            if self.mistake == Mistake::LetsNobodyIn && stamp.name().contains("race") {
                return Err(Error::failed("memory", "planned"));
            }
            let answer = self.with(stamp.name(), |place| self.check(place, stamp, raises));
            self.travel(stamp, "").await;
            answer
        })
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

#[tokio::test(start_paused = true)]
async fn a_receiver_behind_a_slow_network_is_tried_as_hard() {
    let near = tried(Mistake::None).await.expect("a right receiver passes");
    let far = Memory { way: Duration::from_millis(200), ..Memory::new(Mistake::None) };
    let far = run(&far, "t", Load::default()).await.expect("so does one that is far away");
    for report in [near, far] {
        // Four races are staggered: in each all five holders have their time, and the later half of what four of them write is stale.
        assert!(report.handovers >= 4 * 4, "{report}");
        assert!(report.stale_tried >= 4 * 4 * 2 * 6, "{report}");
    }
}

#[tokio::test]
async fn too_few_stale_writes_are_no_success() {
    let (tried, needed) = match tried(Mistake::LetsNobodyIn).await {
        Err(Violation::TooFewTried { tried, needed, failed, .. }) if failed > 0 => (tried, needed),
        other => panic!("{other:?}"),
    };
    assert_eq!((tried, needed), (0, 96));
}

#[tokio::test(start_paused = true)]
async fn mistakes_are_found_behind_a_slow_network_too() {
    for mistake in
        [Mistake::NoCheck, Mistake::CheckThenAct, Mistake::ComparesDoubles, Mistake::SealRaisesNothing]
    {
        let far = Memory { way: Duration::from_millis(200), ..Memory::new(mistake) };
        let found = run(&far, "t", Load { rounds: 40, ..Load::default() }).await;
        assert!(matches!(found, Err(Violation::Broken { .. })), "{mistake:?}: {found:?}");
    }
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
