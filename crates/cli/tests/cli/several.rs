//! `run` with several names at once.

use std::fs;

use super::stage::Stage;

#[test]
fn the_command_finds_every_token() {
    let stage = Stage::new();
    let script = "echo \"$LEASEHOLD_TOKEN $LEASEHOLD_RESOURCE\"; echo \"$LEASEHOLD_TOKENS\"";
    let out = stage.good(&["run", "b c", "--also", "a", "--", "sh", "-c", script]);
    let lines: Vec<(&str, &str)> = out.lines().map(|line| line.split_once(' ').unwrap()).collect();
    let names: Vec<&str> = lines.iter().map(|(_, name)| *name).collect();
    assert_eq!(names, ["b c", "b c", "a"], "in the order of the command line");
    let (first, second): (u64, u64) = (lines[1].0.parse().unwrap(), lines[2].0.parse().unwrap());
    assert_eq!(lines[0].0, lines[1].0);
    assert_ne!(first, second);
    let one = stage.good(&["run", "a", "--", "sh", "-c", "echo \"$LEASEHOLD_TOKENS\""]);
    let (token, name) = one.trim_end().split_once(' ').unwrap();
    assert!(token.parse::<u64>().unwrap() > first.max(second) && name == "a", "{one}");
}

#[test]
fn all_are_had_or_none_and_the_one_in_the_way_is_named() {
    let stage = Stage::new();
    let (_holder, token) = stage.hold("b", &[]);
    let said = stage.say(&["run", "a", "--also", "b", "--no-wait", "--", "echo", "ran"]);
    assert_eq!((said.code, said.out.as_str()), (Some(120), ""));
    let expected = format!("leasehold: b was not acquired: held by holder with token {token} for ");
    assert!(said.err.starts_with(&expected), "{said:?}");
    stage.good(&["run", "a", "--no-wait", "--", "true"]);
    let said = stage.say(&["run", "a", "--also", "b", "--wait", "5s", "--", "echo", "ran"]);
    assert_eq!((said.code, said.out.as_str()), (Some(120), ""));
    let lines: Vec<&str> = said.err.lines().collect();
    let held = format!("b is held by holder with token {token} for ");
    assert!(lines[0].starts_with(&format!("leasehold: waiting for a, b: {held}")), "{said:?}");
    assert!(lines[1].starts_with(&format!("leasehold: a was not acquired: waited 5s, {held}")), "{said:?}");
}

#[test]
fn those_that_share_a_name_never_run_at_once() {
    let stage = Stage::new();
    let (history, busy) = (stage.dir.path().join("history"), stage.dir.path().join("busy"));
    // Every two of these have a name in common.
    let units = [["a", "b"], ["b", "c"], ["c", "a"]];
    let script = format!("mkdir {0} || echo BOTH; sleep 0.03; rmdir {0}", busy.display());
    for _ in 0..3 {
        let running: Vec<_> = units
            .iter()
            .map(|[one, two]| {
                let history = history.to_str().unwrap();
                stage.start(&["run", one, "--also", two, "--history", history, "--", "sh", "-c", &script])
            })
            .collect();
        for run in running {
            let said = run.end();
            assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{said:?}");
            // On a busy machine it waits long enough to say so.
            let is_wait = |line: &str| line.starts_with("leasehold: waiting for ");
            assert!(said.err.lines().all(is_wait), "{said:?}");
        }
    }
    let said = stage.say(&["check-history", history.to_str().unwrap()]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains(" 18 grants"), "{said:?}");
    let text = fs::read_to_string(&history).unwrap();
    for what in ["asked", "granted", "giving-back", "gave-back"] {
        assert_eq!(text.matches(&format!("\"what\":\"{what}\"")).count(), 18, "{what}");
    }
    assert!(text.contains("\"what\":\"queued\""), "some have waited: {text}");
}

#[test]
fn one_that_is_lost_ends_the_command_and_frees_the_others() {
    let stage = Stage::new();
    let history = stage.dir.path().join("history");
    let (file, script) = (history.to_str().unwrap(), "echo ready; exec sleep 300");
    let mut run =
        stage.start(&["run", "a", "--also", "b", "--also", "c", "--history", file, "--", "sh", "-c", script]);
    assert_eq!(run.line(), "ready");
    stage.good(&["revoke", "b", "--reason", "stuck", "--yes"]);
    let said = run.end();
    assert_eq!(said.code, Some(121), "{said:?}");
    assert!(said.err.starts_with("leasehold: lost b with token "), "{said:?}");
    stage.good(&["run", "a", "--also", "c", "--no-wait", "--", "true"]);
    stage.good(&["run", "b", "--wait", "30s", "--", "true"]);
    let text = fs::read_to_string(&history).unwrap();
    assert_eq!(text.matches("\"what\":\"lost\"").count(), 1, "{text}");
    assert_eq!(text.matches("\"what\":\"giving-back\"").count(), 2, "{text}");
    let said = stage.say(&["check-history", file]);
    assert!(!said.out.contains("VIOLATED"), "{said:?}");
}

#[test]
fn a_request_for_one_of_them_gives_all_back() {
    let stage = Stage::new();
    let mut run = stage.start(&["run", "a", "--also", "b", "--", "sh", "-c", "echo ready; exec sleep 300"]);
    assert_eq!(run.line(), "ready");
    assert!(stage.good(&["release", "b"]).ends_with(": drained and released\n"));
    let said = run.end();
    assert_eq!(said.code, Some(143), "{said:?}");
    assert!(said.err.contains(" asks for b; ending the command"), "{said:?}");
    assert!(stage.good(&["history", "a"]).contains("drained"));
}

#[test]
fn a_lease_that_cannot_be_had_leaves_a_whole_history() {
    let stage = Stage::new();
    let (_holder, _) = stage.hold("b", &[]);
    let history = stage.dir.path().join("history");
    let file = history.to_str().unwrap();
    assert_eq!(
        stage.say(&["run", "a", "--also", "b", "--no-wait", "--history", file, "--", "true"]).code,
        Some(120)
    );
    let text = fs::read_to_string(&history).unwrap();
    for call in ["a", "b"] {
        let line = |what: &str| {
            text.lines().any(|line| {
                line.contains(&format!("\"what\":\"{what}\""))
                    && line.contains(&format!("\"call\":\"{call}\""))
            })
        };
        assert!(line("asked") && line("refused"), "{text}");
    }
}

#[test]
fn names_that_make_no_unit_are_refused_before_anything_is_made() {
    let stage = Stage::new();
    let many: Vec<String> = (1..65).map(|number| format!("--also=n{number}")).collect();
    let mut words = vec!["run", "n0"];
    words.extend(many.iter().map(String::as_str));
    words.extend(["--", "true"]);
    for (words, expected) in [
        (&words[..], "65 names are above the maximum of 64 that are had at once; "),
        (
            &["run", "a", "--also", "b", "--also", "a", "--", "true"][..],
            "a is named twice; name each resource once",
        ),
        (
            &["run", "a", "--drain", "5s", "--kill-after", "6s", "--", "true"],
            "--kill-after 6s leaves nothing of --drain 5s to let go in; ",
        ),
        (&["run", "a", "--drain", "1s", "--", "true"], "--drain 1s is below the minimum of 2s"),
    ] {
        let said = stage.say(words);
        assert_eq!(
            (said.code, said.err.starts_with(&format!("leasehold: {expected}"))),
            (Some(125), true),
            "{said:?}"
        );
    }
    assert!(!stage.store().exists());
    // As many as there may be.
    let words: Vec<&str> = words.into_iter().filter(|word| *word != "--also=n64").collect();
    stage.good(&words);
    assert_eq!(stage.say(&["get", "n63"]).code, Some(1), "all were given back");
}
