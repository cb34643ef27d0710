//! Whose directory it is: one service's, and not that of a store without one.

use super::stage::Stage;

#[test]
fn a_second_service_in_one_directory_is_refused_with_the_pid_of_the_first() {
    let stage = Stage::new();
    let first = stage.serve(&[]);
    let data = stage.path("data");
    let said = stage.say(&[
        "serve",
        "--data",
        data.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
        "--log-format",
        "human",
    ]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let last = said.err.lines().last().unwrap();
    assert!(last.starts_with("leasehold: ") && last.contains(&first.running.pid().to_string()), "{last}");
    assert!(last.contains(data.to_str().unwrap()), "{last}");
    first.stop();
    // It was the process that stood in the way, and not anything that it left.
    stage.serve(&[]).stop();
}

#[test]
fn an_address_that_is_taken_is_named() {
    let stage = Stage::new();
    let first = stage.serve(&[]);
    let other = stage.path("other");
    let said = stage.say(&["serve", "--data", other.to_str().unwrap(), "--listen", &first.address]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.lines().last().unwrap().contains(&first.address), "{said:?}");
    first.stop();
}

#[test]
fn a_directory_of_a_store_without_a_service_is_not_served() {
    let stage = Stage::new();
    let store = stage.path("data");
    let store = store.to_str().unwrap();
    stage.good(&["--store", store, "run", "job", "--", "true"]);
    let said = stage.say(&["serve", "--data", store, "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("embedded") && said.err.contains(store), "{said:?}");
    // And is still what it was.
    stage.good(&["--store", store, "run", "job", "--", "true"]);
}

#[test]
fn a_directory_of_a_service_is_not_used_without_it() {
    let stage = Stage::new();
    stage.serve(&[]).stop();
    let data = stage.path("data");
    let data = data.to_str().unwrap();
    let said = stage.say(&["--store", data, "run", "job", "--", "true"]);
    assert_eq!(said.code, Some(122), "{said:?}");
    assert!(said.err.contains("belongs to a service") && said.err.contains(data), "{said:?}");
    stage.serve(&[]).stop();
}

#[test]
fn tokens_go_on_after_a_restart() {
    let stage = Stage::new();
    let token = |stage: &Stage, url: &str| -> u64 {
        let out = stage.good(&["--store", url, "run", "job", "--", "sh", "-c", "echo $LEASEHOLD_TOKEN"]);
        out.trim().parse().unwrap()
    };
    let serving = stage.serve(&[]);
    let first = token(&stage, &serving.url());
    serving.stop();
    let serving = stage.serve(&[]);
    assert!(token(&stage, &serving.url()) > first);
    serving.stop();
}
