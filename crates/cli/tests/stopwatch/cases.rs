//! The cases, a few lines each. Ttls are short, so that a case takes seconds.

use rustix::process::Signal;

use crate::judge::Row;
use crate::scene::Scene;

pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Whether it is among those that every run has.
    pub(crate) short: bool,
    pub(crate) play: fn() -> Vec<Row>,
}

const fn case(name: &'static str, play: fn() -> Vec<Row>) -> Case {
    Case { name, short: false, play }
}

const fn short(name: &'static str, play: fn() -> Vec<Row>) -> Case {
    Case { name, short: true, play }
}

const TTL: u64 = 2_000;

pub(crate) const CASES: [Case; 45] = [
    case("directory: released to a waiter", || passed_on(Scene::directory(TTL), Scene::release)),
    case("directory: session closed, a waiter", || passed_on(Scene::directory(TTL), Scene::close)),
    case("directory: killed, a waiter", || passed_on(Scene::directory(TTL), Scene::kill)),
    case("directory: stopped, a waiter", || passed_on(Scene::directory(TTL), Scene::freeze)),
    short("directory: its server stands still for longer than the ttl", || {
        still(Scene::directory(TTL), 6_000)
    }),
    case("directory: its server stands still for less than the ttl", || still(Scene::directory(TTL), 900)),
    case("directory: its server is killed, and the holder later", || {
        let mut scene = Scene::directory(TTL);
        let first = scene.holder("A", &[]);
        let next = scene.waiter("B", &[]);
        scene.wait(1_000);
        scene.server(Signal::KILL);
        scene.wait(1_500);
        // It may be the one that serves by now.
        scene.kill(first);
        scene.granted(next);
        scene.judge()
    }),
    case("directory: the holder that serves it stands still", || {
        let mut scene = Scene::own_directory(TTL);
        let first = scene.holder("A", &[]);
        scene.wait(1_000);
        scene.freeze(first);
        scene.wait(5_000);
        scene.thaw(first);
        scene.wait(1_500);
        scene.judge()
    }),
    case("service: released to a waiter", || passed_on(Scene::service(TTL), Scene::release)),
    case("service: killed, a waiter", || passed_on(Scene::service(TTL), Scene::kill)),
    short("service: stopped, a waiter", || passed_on(Scene::service(TTL), Scene::freeze)),
    case("service: released, and nobody asks for a while", || {
        let mut scene = Scene::service(TTL);
        let first = scene.holder("A", &[]);
        scene.wait(1_500);
        scene.release(first);
        scene.wait(3_000);
        scene.holder("B", &[]);
        scene.judge()
    }),
    short("service: silent since its grant, behind one that released", || {
        silent_since_grant(Scene::service(3_000))
    }),
    case("service: stopped, and back within the ttl", || back(Scene::service(3_000), &[], 1_000)),
    case("service: stopped, and back in its grace", || back(Scene::service(TTL), &["grace=8000"], 4_500)),
    case("service: stopped, its grace passes, a waiter", || {
        let mut scene = Scene::service(TTL);
        let first = scene.holder("A", &["grace=2000"]);
        let next = scene.waiter("B", &[]);
        scene.wait(1_500);
        scene.freeze(first);
        scene.granted(next);
        scene.judge()
    }),
    case("service: stopped, a cool-down, a waiter", || {
        let mut scene = Scene::service(TTL);
        let first = scene.holder("A", &["delay=2000"]);
        let next = scene.waiter("B", &[]);
        scene.wait(1_500);
        scene.freeze(first);
        scene.granted(next);
        scene.judge()
    }),
    short("service: silent, then revoked", || revoked(&["--reason", "silent", "--yes"], 4_000, true)),
    case("service: silent, then revoked at once", || {
        revoked(&["--now", "--reason", "silent", "--yes"], 4_000, true)
    }),
    case("service: healthy, and revoked", || revoked(&["--reason", "planned", "--yes"], 1_500, false)),
    case("service: healthy, and revoked at once", || {
        revoked(&["--now", "--reason", "planned", "--yes"], 1_500, false)
    }),
    case("service: the next one warms up", || {
        let mut scene = Scene::service(TTL);
        let first = scene.holder("A", &[]);
        let next = scene.waiter("B", &["warm"]);
        scene.wait(1_000);
        scene.release(first);
        scene.granted(next);
        scene.wait(2_500);
        scene.ready(next);
        scene.judge()
    }),
    case("service: the next one dies in its warm-up", || {
        let mut scene = Scene::service(TTL);
        let first = scene.holder("A", &[]);
        let next = scene.waiter("B", &["warm"]);
        scene.wait(1_000);
        scene.release(first);
        scene.granted(next);
        let last = scene.waiter("C", &[]);
        scene.wait(1_500);
        scene.freeze(next);
        scene.granted(last);
        scene.judge()
    }),
    case("service: asked to release by the command", || {
        let mut scene = Scene::service(TTL);
        let first = scene.holder("A", &[]);
        let next = scene.waiter("B", &[]);
        scene.wait(1_000);
        scene.operate(first, &["release", "job"], "released");
        scene.granted(next);
        scene.judge()
    }),
    case("service: asked to release, and drained for longer than a renewal", || {
        let mut scene = Scene::service(TTL);
        let first = scene.holder("A", &["drains=1500"]);
        let next = scene.waiter("B", &[]);
        scene.wait(1_000);
        scene.operate(first, &["release", "job", "--wait", "20s"], "drained");
        scene.granted(next);
        scene.judge()
    }),
    case("service: handed over to a waiter that is not the first", || {
        let mut scene = Scene::service(TTL);
        let first = scene.holder("A", &[]);
        scene.waiter("B", &[]);
        let next = scene.waiter("C", &[]);
        scene.wait(1_000);
        scene.operate(first, &["release", "job", "--to", "C"], "handed-over");
        scene.granted(next);
        scene.judge()
    }),
    case("plain HTTP: released to a waiter", || plain(TTL, 1_700, Scene::release)),
    case("plain HTTP: silent, a waiter", || plain(TTL, 1_700, Scene::freeze)),
    case("plain HTTP: never renewed, a waiter", || plain(3_000, 500, Scene::freeze)),
    case("plain HTTP: silent since its grant, behind one that released", || {
        let mut scene = Scene::service(3_000);
        let first = scene.plain("A");
        scene.granted(first);
        let next = scene.plain("B");
        scene.wait(1_500);
        scene.release(first);
        scene.granted(next);
        scene.wait(500);
        scene.freeze(next);
        let last = scene.plain("C");
        scene.granted(last);
        scene.judge()
    }),
    case("plain HTTP: silent, then revoked at once", || {
        let mut scene = Scene::service(6_000);
        let first = scene.plain("A");
        scene.granted(first);
        let next = scene.waiter("B", &[]);
        scene.wait(1_500);
        scene.freeze(first);
        scene.wait(3_000);
        scene.operate(first, &["revoke", "job", "--now", "--reason", "silent", "--yes"], "revoked");
        scene.granted(next);
        scene.judge()
    }),
    case("plain HTTP: the service stands still for longer than the ttl", || {
        let mut scene = Scene::service(TTL);
        let first = scene.plain("A");
        scene.granted(first);
        let next = scene.plain("B");
        scene.wait(1_700);
        scene.server(Signal::STOP);
        scene.wait(6_000);
        scene.server(Signal::CONT);
        scene.wait(1_500);
        scene.release(first);
        scene.granted(next);
        scene.judge()
    }),
    case("service: stopped in order for longer than the ttl", || away(false)),
    case("service: killed, and started again after longer than the ttl", || away(true)),
    short("service: stands still for longer than the ttl", || still(Scene::service(TTL), 6_000)),
    case("cluster: released to a waiter", || passed_on(Scene::cluster(TTL), Scene::release)),
    case("cluster: stopped, a waiter", || passed_on(Scene::cluster(TTL), Scene::freeze)),
    case("cluster: the leader is killed, and its holder goes on", || {
        let mut scene = Scene::cluster(4_000);
        let first = scene.holder("A", &[]);
        let next = scene.waiter("B", &[]);
        scene.wait(1_500);
        let leader = scene.leader();
        scene.node(leader, Signal::KILL);
        scene.wait(3_000);
        scene.release(first);
        scene.granted(next);
        scene.judge()
    }),
    case("cluster: one follower stands still", || {
        let mut scene = Scene::cluster(TTL);
        let first = scene.holder("A", &[]);
        let next = scene.waiter("B", &[]);
        scene.wait(1_500);
        let follower = (scene.leader() + 1) % 3;
        scene.node(follower, Signal::STOP);
        scene.freeze(first);
        scene.granted(next);
        scene.node(follower, Signal::CONT);
        scene.judge()
    }),
    case("cluster: silent, then revoked", || {
        let mut scene = Scene::cluster(6_000);
        let first = scene.holder("A", &[]);
        let next = scene.waiter("B", &[]);
        scene.wait(1_500);
        scene.freeze(first);
        scene.wait(3_000);
        scene.operate(first, &["revoke", "job", "--reason", "silent", "--yes"], "revoked");
        scene.granted(next);
        scene.judge()
    }),
    case("cluster: the leader is killed with the holder", || {
        let mut scene = Scene::cluster(TTL);
        let first = scene.holder("A", &[]);
        let next = scene.waiter("B", &[]);
        scene.wait(1_500);
        let leader = scene.leader();
        scene.freeze(first);
        scene.node(leader, Signal::KILL);
        scene.granted(next);
        scene.judge()
    }),
    case("cluster: the leader is killed, and the name was free", || {
        let mut scene = Scene::cluster(TTL);
        let first = scene.holder("A", &[]);
        scene.wait(1_000);
        scene.release(first);
        let leader = scene.leader();
        scene.wait(4_000);
        scene.node(leader, Signal::KILL);
        scene.wait(1_500);
        scene.holder("B", &[]);
        scene.judge()
    }),
    short("cluster: both followers stand still for longer than the ttl", || nodes_still(false)),
    case("cluster: all nodes stand still for longer than the ttl", || nodes_still(true)),
    case("cluster: the leader stands still for longer than the ttl, the holder too", || {
        let mut scene = Scene::cluster(TTL);
        let first = scene.holder("A", &[]);
        let next = scene.waiter("B", &[]);
        scene.wait(1_500);
        let leader = scene.leader();
        scene.node(leader, Signal::STOP);
        scene.freeze(first);
        scene.wait(6_000);
        scene.node(leader, Signal::CONT);
        scene.granted(next);
        scene.judge()
    }),
];

/// A holds, B waits, and A is through with it in some way.
fn passed_on(mut scene: Scene, end: fn(&Scene, usize)) -> Vec<Row> {
    let first = scene.holder("A", &[]);
    let next = scene.waiter("B", &[]);
    scene.wait(1_700);
    end(&scene, first);
    scene.granted(next);
    scene.judge()
}

/// The same over plain HTTP, after so long.
fn plain(ttl: u64, after: u64, end: fn(&Scene, usize)) -> Vec<Row> {
    let mut scene = Scene::service(ttl);
    let first = scene.plain("A");
    scene.granted(first);
    let next = scene.plain("B");
    scene.wait(after);
    end(&scene, first);
    scene.granted(next);
    scene.judge()
}

/// Whoever serves stands still.
fn still(mut scene: Scene, millis: u64) -> Vec<Row> {
    let first = scene.holder("A", &[]);
    let next = scene.waiter("B", &[]);
    scene.wait(1_700);
    scene.server(Signal::STOP);
    scene.wait(millis);
    scene.server(Signal::CONT);
    scene.wait(1_000);
    scene.release(first);
    scene.granted(next);
    scene.judge()
}

fn silent_since_grant(mut scene: Scene) -> Vec<Row> {
    let first = scene.holder("A", &[]);
    let next = scene.waiter("B", &[]);
    scene.wait(1_500);
    scene.release(first);
    scene.granted(next);
    scene.wait(500);
    scene.freeze(next);
    let last = scene.waiter("C", &[]);
    scene.granted(last);
    scene.judge()
}

/// Stopped for so long, and back with its lease.
fn back(mut scene: Scene, policies: &[&str], millis: u64) -> Vec<Row> {
    let first = scene.holder("A", policies);
    scene.wait(1_500);
    scene.freeze(first);
    scene.wait(millis);
    scene.thaw(first);
    scene.wait(1_000);
    let next = scene.waiter("B", &[]);
    scene.release(first);
    scene.granted(next);
    scene.judge()
}

fn revoked(words: &[&str], after: u64, silent: bool) -> Vec<Row> {
    let mut scene = Scene::service(9_000);
    let first = scene.holder("A", &[]);
    let next = scene.waiter("B", &[]);
    scene.wait(1_500);
    if silent {
        scene.freeze(first);
    }
    scene.wait(after);
    scene.operate(first, &[&["revoke", "job"], words].concat(), "revoked");
    scene.granted(next);
    scene.judge()
}

fn away(at_once: bool) -> Vec<Row> {
    let mut scene = Scene::service(TTL);
    let first = scene.holder("A", &[]);
    let next = scene.waiter("B", &[]);
    scene.wait(1_500);
    scene.away_for(4_000, at_once);
    scene.wait(2_000);
    scene.release(first);
    scene.granted(next);
    scene.judge()
}

fn nodes_still(leader_too: bool) -> Vec<Row> {
    let mut scene = Scene::cluster(TTL);
    let first = scene.holder("A", &[]);
    let next = scene.waiter("B", &[]);
    scene.wait(1_500);
    let leader = scene.leader();
    let which: Vec<usize> = (0..3).filter(|node| leader_too || *node != leader).collect();
    which.iter().for_each(|node| scene.node(*node, Signal::STOP));
    scene.wait(6_000);
    which.iter().for_each(|node| scene.node(*node, Signal::CONT));
    scene.wait(2_000);
    scene.release(first);
    scene.granted(next);
    scene.judge()
}
