//! A directory, a wrapper, and what can be seen of them from outside.

use std::fmt::Debug;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use leasehold_cli::guardian::clock::Point;
use leasehold_cli::guardian::tree::Stat;
use leasehold_kit::{held_back, this_thread_was_held_back};
use rustix::process::{Pid, Signal, getpriority_process, kill_process, setpriority_process};
use tempfile::TempDir;

/// Longer than anything here takes on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(1);
const TRIES: usize = 5;
/// Less than a renewal may be late with the ttls here.
const DISTURBED: Duration = Duration::from_millis(300);

/// Starts one descendant of each kind and waits: a child, a grandchild, one in a session of its own, and a
/// daemon that forked twice. Each writes its number to a file of that name.
pub(crate) const TREE: &str = r#"
    sleep 300 & echo $! > $STAGE/child
    sh -c 'sleep 300 & echo $! > $STAGE/grandchild; wait' &
    setsid sh -c 'echo $$ > $STAGE/session; exec sleep 300' &
    ( setsid sh -c 'sleep 300 & echo $! > $STAGE/daemon' & )
    wait
"#;
/// Waits until the test says [`Stage::go`].
pub(crate) const UNTIL_TOLD: &str = "mkfifo $STAGE/go; read x < $STAGE/go";
pub(crate) const TREE_FILES: [&str; 4] = ["child", "grandchild", "session", "daemon"];

/// The same, deaf to SIGTERM: only SIGKILL ends it.
pub(crate) fn deaf_tree() -> String {
    format!("trap '' TERM\n{TREE}")
}

pub(crate) struct Stage {
    pub(crate) dir: TempDir,
    pub(crate) wrapper: Option<Child>,
}

impl Stage {
    /// A stage on which nothing runs yet.
    pub(crate) fn empty() -> Self {
        Self { dir: TempDir::new().unwrap(), wrapper: None }
    }

    /// A wrapper with these options that runs this shell script.
    pub(crate) fn run(options: &[&str], script: &str) -> Self {
        let mut stage = Self::empty();
        let mut command = stage.command(options, &["sh", "-c", script]);
        stage.wrapper = Some(command.stdin(Stdio::null()).spawn().unwrap());
        stage
    }

    /// The wrapper's command line, to be started by the caller.
    pub(crate) fn command(&self, options: &[&str], run: &[&str]) -> Command {
        let mut command = Command::new(example());
        command.arg("--log").arg(self.file("log")).args(options).arg("--").args(run);
        command.env("STAGE", self.dir.path());
        command
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.file("log")).unwrap_or_default()
    }

    /// Waits for a line of the log that contains `text`; gives the moment it was written and the rest of it.
    pub(crate) fn wait_log(&self, text: &str) -> (Point, String) {
        let _shown = ShownInPanic(self);
        eventually(&format!("the log says {text:?}"), || {
            let log = self.log();
            // A line without an end is still being written.
            let line =
                log.split_inclusive('\n').filter(|line| line.ends_with('\n')).find(|l| l.contains(text))?;
            let (point, rest) = split_point(line);
            Some((point, rest.trim().to_owned()))
        })
    }

    /// Wrapper, guardian and command.
    pub(crate) fn pids(&self) -> [Pid; 3] {
        let (_, line) = self.wait_log(" pids ");
        let pids: Vec<Pid> = line.split(' ').skip(1).map(|word| pid(word.parse().unwrap())).collect();
        pids.try_into().unwrap()
    }

    /// The number that a process wrote to this file.
    pub(crate) fn written(&self, name: &str) -> Pid {
        eventually(&format!("file {name} is written"), || {
            let text = fs::read_to_string(self.file(name)).ok()?;
            Some(pid(text.strip_suffix('\n')?.parse().unwrap()))
        })
    }

    /// Waits until the guardian has taken this many more deadlines. Unless it does something else first: then how long it was held back.
    pub(crate) fn renewed(&self, more: usize) -> Result<(), Duration> {
        self.until_taken(self.taken() + more, true)
    }

    /// The same until it has taken so many, and whatever it does then.
    pub(crate) fn taken_in_all(&self, count: usize) -> Result<(), Duration> {
        self.until_taken(count, false)
    }

    fn until_taken(&self, count: usize, goes_on: bool) -> Result<(), Duration> {
        let guardian = self.pids()[1];
        let mut held_back = Duration::ZERO;
        eventually(&format!("{count} deadlines are taken"), || {
            held_back = held_back.max(waited(guardian));
            let log = self.log();
            let ended = ["taken false", "Terminating", "Killing"].iter().any(|word| log.contains(word));
            let taken = self.taken() >= count;
            if ended && (goes_on || !taken) {
                return Some(Err(held_back));
            }
            taken.then_some(Ok(()))
        })
    }

    /// How many deadlines the guardian has taken after the first.
    pub(crate) fn taken(&self) -> usize {
        self.log().matches("taken true").count()
    }

    /// Lets a script go on that reads from the fifo `go`.
    pub(crate) fn go(&self) {
        let fifo = eventually("the fifo is there", || self.file("go").exists().then(|| self.file("go")));
        fs::write(fifo, "\n").unwrap();
    }

    /// The command and all of [`TREE`].
    pub(crate) fn tree(&self) -> Vec<Pid> {
        let mut tree = vec![self.pids()[2]];
        tree.extend(TREE_FILES.map(|name| self.written(name)));
        tree
    }

    /// The last deadline the wrapper may have sent.
    pub(crate) fn last_deadline(&self) -> Point {
        let log = self.log();
        let line = log.lines().rfind(|line| line.contains(" deadline ")).unwrap();
        let (_, rest) = split_point(line);
        split_point(rest.strip_prefix("deadline ").unwrap()).0
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let wrapper = self.wrapper.as_mut().unwrap();
        eventually("the wrapper ends", || wrapper.try_wait().unwrap())
    }
}

impl Drop for Stage {
    /// A failed test leaves nothing running, not even what the guardian failed to kill. After a test that
    /// passed there is nothing to kill, and the numbers may belong to strangers by now.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            eprintln!("{log}");
            let noted =
                log.lines().filter(|line| line.contains(" pids ")).flat_map(|line| line.split(' ').skip(3));
            let written = TREE_FILES.map(|name| fs::read_to_string(self.file(name)).unwrap_or_default());
            let written = written.iter().map(|text| text.trim());
            for pid in noted.chain(written).filter_map(|word| Pid::from_raw(word.parse().ok()?)) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        if let Some(wrapper) = &mut self.wrapper {
            let _ = wrapper.kill();
            let _ = wrapper.wait();
        }
    }
}

/// The example, which lies beside the command.
pub(crate) fn example() -> PathBuf {
    let command = PathBuf::from(env!("CARGO_BIN_EXE_leasehold"));
    let path = command.parent().unwrap().join("examples/supervise");
    assert!(path.exists(), "{path:?} is missing: build it with cargo build -p leasehold-cli --examples");
    path
}

/// Whoever waits in vain for a line wants to see those that came instead.
struct ShownInPanic<'a>(&'a Stage);

impl Drop for ShownInPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("the log:\n{}", self.0.log());
        }
    }
}

/// Looks until there is something to see; gives up, with words, after a long time.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Point::now().plus(PATIENCE);
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(!end.remaining(Point::now()).is_zero(), "waited in vain: {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Tries again when the guardian was held back for so long that a deadline came too late: that shows nothing.
pub(crate) fn undisturbed(attempt: impl Fn() -> Result<(), Duration>) {
    for _ in 0..TRIES {
        let Err(held_back) = attempt() else { return };
        assert!(held_back >= DISTURBED, "it did not go on, and was held back for {held_back:?} only");
    }
    panic!("the guardian was held back for {DISTURBED:?} or more in each of {TRIES} tries");
}

/// When processes were seen to be gone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gone {
    pub(crate) at: Point,
    /// For how long others had the processors while the guardian, the last of these processes or the test was ready to run.
    held_back: Duration,
}

impl From<Point> for Gone {
    fn from(at: Point) -> Self {
        Self { at, held_back: Duration::ZERO }
    }
}

/// What processes have waited for a processor since this was made, the longest of them.
struct Waits(Vec<(Pid, Duration, Duration)>);

impl Waits {
    fn of(pids: impl Iterator<Item = Pid>) -> Self {
        Self(pids.map(|pid| (pid, waited(pid), Duration::ZERO)).collect())
    }

    fn look(&mut self) {
        for (pid, before, since) in &mut self.0 {
            *since = waited(*pid).saturating_sub(*before).max(*since);
        }
    }

    fn longest(&self) -> Duration {
        self.0.iter().map(|(_, _, since)| *since).max().unwrap_or_default()
    }
}

fn waited(pid: Pid) -> Duration {
    held_back(pid.as_raw_nonzero().get().unsigned_abs())
}

/// Waits until all of these are dead, and says when that was seen.
pub(crate) fn when_gone(pids: &[Pid]) -> Gone {
    // What is measured is the guardian, not how long this thread waits for a processor behind other tests. It is
    // refused to most users; then a busy machine may fail a test that a quiet one passes, never the reverse.
    let before = getpriority_process(None).unwrap();
    let _ = setpriority_process(None, before - 10);
    let own = this_thread_was_held_back();
    let mut ending = Waits::of(pids.iter().copied());
    // The guardian is among them.
    let mut parents = Waits::of(pids.iter().filter_map(|pid| Stat::read(*pid)?.parent));
    let at = eventually("all processes are gone", || {
        parents.look();
        ending.look();
        // The clock is read after the look: it errs towards too late.
        pids.iter().all(|pid| is_gone(*pid)).then(Point::now)
    });
    let _ = setpriority_process(None, before);
    let held_back = parents.longest() + ending.longest() + this_thread_was_held_back().saturating_sub(own);
    Gone { at, held_back }
}

pub(crate) fn is_gone(pid: Pid) -> bool {
    Stat::read(pid).is_none_or(|stat| stat.is_dead())
}

pub(crate) fn wait_state(pid: Pid, stopped: bool) {
    eventually(&format!("process {pid:?} has stopped = {stopped}"), || {
        (Stat::read(pid)?.is_stopped() == stopped).then_some(())
    });
}

impl Gone {
    /// Strictly, on both clocks, but for the time in which the machine gave others the processors.
    pub(crate) fn is_before(self, deadline: Point) -> bool {
        !deadline.plus(self.held_back).remaining(self.at).is_zero()
    }
}

/// Fails unless `moment` lies strictly before `deadline` on both clocks, or would but for the time in which the machine gave others
/// the processors.
pub(crate) fn assert_before(moment: impl Into<Gone>, deadline: Point) {
    let moment = moment.into();
    let Gone { at, held_back } = moment;
    let late = at.remaining(deadline);
    assert!(moment.is_before(deadline), "{late:?} after the deadline, and held back for {held_back:?}");
    println!("gone {:?} before the deadline, held back for {held_back:?}", deadline.remaining(at));
}

pub(crate) fn signal(pid: Pid, signal: Signal) {
    kill_process(pid, signal).unwrap();
}

pub(crate) fn pid(raw: i32) -> Pid {
    Pid::from_raw(raw).unwrap()
}

fn split_point(line: &str) -> (Point, &str) {
    let mut words = line.splitn(3, ' ');
    let mut reading = || Duration::from_nanos(number(words.next().unwrap().trim()));
    let point = Point::new(reading(), reading());
    (point, words.next().unwrap_or_default())
}

fn number<N: std::str::FromStr<Err: Debug>>(word: &str) -> N {
    word.parse().unwrap()
}
