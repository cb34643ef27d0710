//! The service against its own OpenAPI document, by a tool that makes up requests: what the document allows and what it does not.
//!
//! Every answer must have a status, a kind and a form that the document names, and none may be an error of the service. A watch does
//! not end, so it is left out here; the tests of the HTTP door read it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use leasehold_server::config::Config;
use leasehold_server::start;
use tempfile::TempDir;

/// The tool, as the command that runs all tests installs it, or as somebody says.
fn tool(root: &Path) -> PathBuf {
    let named = std::env::var_os("LEASEHOLD_SCHEMATHESIS").map(PathBuf::from);
    let tool = named.unwrap_or_else(|| root.join("target/tools/schemathesis/bin/st"));
    assert!(
        tool.exists(),
        "{} is missing; run `cargo xtask test`, or install it with\n  python3 -m venv target/tools/schemathesis && \
         target/tools/schemathesis/bin/pip install -r tests/schemathesis/requirements.txt",
        tool.display()
    );
    tool
}

/// What the tool said. It repeats whole requests, which may have hundreds of kilobytes.
fn readable(said: &[u8]) -> String {
    const SHOWN: usize = 500;
    let said = String::from_utf8_lossy(said);
    said.lines().flat_map(|line| line.chars().take(SHOWN).chain(['\n'])).collect()
}

/// What the service has counted: requests that were all refused at the door would test only the door.
fn metrics(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).expect("the service listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    text
}

#[test]
fn every_answer_is_as_the_document_says() {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/server lies in the root");
    let tool = tool(root);
    let directory = TempDir::new().expect("a temporary directory");
    let mut config = Config::new(directory.path().join("data"));
    config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let service = start(&config).expect("the service starts");
    let url = format!("http://{}", service.address());
    // Another seed makes up other requests: LEASEHOLD_SCHEMATHESIS_SEED=1 cargo test -p leasehold-server --test all schemathesis
    let seed = std::env::var("LEASEHOLD_SCHEMATHESIS_SEED").unwrap_or_else(|_| "7420".to_owned());
    let run = Command::new(tool)
        .arg("--config-file")
        .arg(root.join("tests/schemathesis/schemathesis.toml"))
        .args(["run", &format!("{url}/openapi.json"), "--seed", &seed, "--no-color"])
        .env("LEASEHOLD_URL", &url)
        .env("PYTHONPATH", root.join("tests/schemathesis"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // It keeps notes between runs, and every run should be the same.
        .current_dir(directory.path())
        .output()
        .expect("the tool starts");
    let (said, troubles) = (readable(&run.stdout), readable(&run.stderr));
    assert!(run.status.success(), "{said}\n{troubles}");
    assert!(said.contains("passed"), "nothing was tested: {said}\n{troubles}");
    let metrics = metrics(service.address());
    for operation in [
        "open",
        "renew",
        "acquire",
        "release",
        "set-value",
        "set-ready",
        "write-register",
        "get",
        "list",
        "gaps",
    ] {
        let wanted = format!("operation=\"{operation}\"");
        let requests = metrics.lines().filter(|line| line.starts_with("leasehold_requests_total"));
        let counted: Vec<&str> = requests.filter(|line| line.contains(&wanted)).collect();
        let through = counted.iter().any(|line| line.contains("code=\"ok\""));
        assert!(through, "no {operation} ever went through:\n{}", counted.join("\n"));
    }
    service.stop();
    service.wait().expect("it ends because it was asked to");
}
