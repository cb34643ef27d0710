//! `leasehold serve` as a process that a test may stop, kill and start again, always on the same port and directory.

use std::fs::{File, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Below the ports that the system gives to outgoing connections. While the service is away, one of its own clients could
/// otherwise be given its port.
const PORTS: std::ops::Range<u64> = 10_240..32_000;
/// Longer than a start takes on a busy machine.
const START_TIME: Duration = Duration::from_secs(30);

pub(crate) struct Server {
    directory: PathBuf,
    settings: Vec<String>,
    address: SocketAddr,
    child: Child,
}

impl Server {
    /// Starts a service with its data in this directory, and comes back when it answers.
    pub(crate) fn start(directory: &Path, settings: &[&str]) -> Self {
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let address = free_address();
        let child = spawn(directory, &settings, address);
        let mut server = Self { directory: directory.to_owned(), settings, address, child };
        server.wait_until_it_answers();
        server
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("leasehold://{}", self.address)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// `kill -9`. A service that has ended by itself is a failure of the test.
    pub(crate) fn kill(&mut self) {
        self.assert_alive();
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn stop(&mut self) {
        self.signal(Signal::TERM);
        self.child.wait().unwrap();
    }

    /// Starts it again where it was. Does not wait for it: its clients do.
    pub(crate) fn start_again(&mut self) {
        self.child = spawn(&self.directory, &self.settings, self.address);
    }

    /// Waits until it takes connections.
    pub(crate) fn wait_until_it_answers(&mut self) {
        let port = self.directory.join("port");
        let began = leasehold_clock::read();
        while !port.exists() {
            self.assert_alive();
            assert!(
                leasehold_clock::read().since(began).greater() < START_TIME,
                "the service does not start"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn assert_alive(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            let log = std::fs::read_to_string(self.directory.join("serve.log")).unwrap_or_default();
            let last: Vec<&str> = log.lines().rev().take(5).collect();
            panic!("process {} of the service ended by itself with {status}: {last:#?}", self.pid());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing happens to one that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(directory: &Path, settings: &[String], address: SocketAddr) -> Child {
    let port = directory.join("port");
    let _ = std::fs::remove_file(&port);
    let log: File = OpenOptions::new().create(true).append(true).open(directory.join("serve.log")).unwrap();
    Command::new(env!("CARGO_BIN_EXE_leasehold"))
        .args(["serve", "--log-format", "human", "--listen", &address.to_string(), "--data"])
        .arg(directory.join("served"))
        .arg("--port-file")
        .arg(port)
        .args(settings)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// An address that nobody listens on.
fn free_address() -> SocketAddr {
    let mut draw = leasehold_clock::read().raw ^ u64::from(std::process::id()) << 32;
    for _ in 0..1_000 {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let port = PORTS.start + (draw >> 33) % (PORTS.end - PORTS.start);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(port).unwrap()));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
    panic!("no port between {} and {} is free", PORTS.start, PORTS.end);
}
