//! The suite that every receiver passes, and two ways of leaving the check out that do not pass it.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use leasehold_fence::conformance::{Load, Report, Subject, Trouble, Violation, Writer, Written, run};
use leasehold_fence::files::Fence;
use leasehold_fence::{Error, Receiver, Stamp};

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Right,
    Unchecked,
    CheckThenAct,
}

#[derive(Clone)]
struct Log {
    way: Way,
    file: PathBuf,
    fence: Fence,
}

impl Subject for Log {
    type Writer = Self;

    fn receiver(&self) -> Arc<dyn Receiver> {
        Arc::new(self.fence.clone())
    }

    async fn writer(&self) -> Result<Self, Trouble> {
        Ok(self.clone())
    }

    async fn written(&self, name: &str) -> Result<Vec<Written>, Trouble> {
        let text = std::fs::read_to_string(&self.file)?;
        let lines = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let written = lines
            .filter(|words| words[0] == name)
            .map(|words| Ok(Written { token: words[1].parse()?, value: words[2].to_owned() }));
        written.collect()
    }
}

impl Writer for Log {
    async fn write(&mut self, stamp: &Stamp, value: &str) -> Result<(), Error> {
        let line = format!("{} {} {value}\n", stamp.name(), stamp.token());
        if self.way == Way::Right {
            let append = |old: Option<Vec<u8>>| [old.unwrap_or_default(), line.into_bytes()].concat();
            return self.fence.update(stamp, append).await;
        }
        if self.way == Way::CheckThenAct {
            // The seal is a check that raises. The write comes after it.
            self.fence.seal(stamp).await?;
            // A pause between looking and acting, longer for some than for others.
            let pause = value.bytes().map(u64::from).sum::<u64>() % 7;
            tokio::time::sleep(Duration::from_millis(5 * pause)).await;
        }
        let mut file = OpenOptions::new().append(true).create(true).open(&self.file).unwrap();
        file.write_all(line.as_bytes()).unwrap();
        Ok(())
    }
}

async fn tried(way: Way, load: Load) -> Result<Report, Violation> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("data");
    run(&Log { way, fence: Fence::new(&file).unwrap(), file }, "conformance", load).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fence_passes() {
    let report = tried(Way::Right, Load::default()).await.unwrap();
    println!("files: {report}");
    assert_eq!((report.races, report.failed, report.unknown), (8, 0, 0));
    assert!(report.accepted > 50 && report.stale_tried > 50, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_without_the_check_is_found() {
    for (way, rule) in [(Way::Unchecked, "tokens never fall"), (Way::CheckThenAct, "tokens never fall")] {
        match tried(way, Load { rounds: 40, ..Load::default() }).await {
            Err(Violation::Broken { rule: found, .. }) => assert_eq!(found, rule, "{way:?}"),
            other => panic!("{way:?}: {other:?}"),
        }
    }
}
