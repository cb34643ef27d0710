//! `plan`: what numbers come to, as text, as JSON and as a drawing; what is refused, and what would not be.

use serde_json::json;

use super::stage::Stage;

#[test]
fn a_plan_needs_no_store_and_says_guard_and_effective_period() {
    let stage = Stage::new();
    let text = stage.good(&["plan", "--ttl", "30s", "--drift", "20%", "--in-flight", "1s"]);
    assert!(text.starts_with("accepted\n"), "{text}");
    assert!(text.contains("\n  guard          7s "), "{text}");
    assert!(text.contains("\n  effective      23s "), "{text}");
    assert!(text.contains("7s >= 6s + 1s = 7s: holds, with nothing to spare"), "{text}");
    assert!(text.contains("2 x 10s + 100ms = 20.1s < 30s - 7s = 23s: holds, 2.9s to spare"), "{text}");
    assert!(
        text.contains("unplanned gap  45.1s     at worst; 55.1s for those who only poll, every 10s"),
        "{text}"
    );
    assert!(text.is_ascii(), "{text}");
    assert!(!stage.store().exists());
}

#[test]
fn a_refused_plan_names_the_inequality_and_a_command_that_is_accepted() {
    let stage = Stage::new();
    for (arguments, which) in [
        (&["--ttl", "10s", "--renew-every", "5s"][..], "availability"),
        (&["--margin", "0s", "--in-flight", "500ms"], "safety"),
        (&["--pause", "9s"], "pause"),
        (&["--ttl", "1s", "--rtt", "300ms"], "availability"),
    ] {
        let said = stage.say(&[&["plan"], arguments].concat());
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.out.starts_with(&format!("refused: {which} does not hold: ")), "{said:?}");
        let command = said.out.lines().find_map(|line| line.strip_prefix("  leasehold ")).unwrap();
        let again: Vec<&str> = command.split(' ').collect();
        assert!(stage.good(&again).starts_with("accepted\n"), "{command}");
    }
    let said = stage.say(&["plan", "--pause", "1h"]);
    assert_eq!(said.code, Some(1));
    assert!(said.out.contains("nearest: none; no ttl up to 5m leaves room for the pause"), "{said:?}");
}

#[test]
fn a_plan_is_json_for_programs() {
    let stage = Stage::new();
    let plan = stage.json(0, &["plan", "--pause", "2s", "--leases", "10"]);
    assert_eq!((&plan["accepted"], &plan["refused"]), (&json!(true), &json!(null)));
    assert_eq!((&plan["guard_ms"], &plan["effective_ms"]), (&json!(10), &json!(9_000)));
    assert_eq!(
        plan["inequalities"][2],
        json!({ "name": "pause", "left_ms": 5_433, "relation": "<", "right_ms": 9_000, "holds": true })
    );
    assert_eq!(plan["pauses"]["effect"], "unnoticed");
    assert_eq!((&plan["coalesced"]["sessions"], &plan["separate"]["sessions"]), (&json!(1), &json!(10)));
    let plan = stage.json(1, &["plan", "--ttl", "2s", "--renew-every", "1s"]);
    assert_eq!(plan["refused"]["inequality"], "availability");
    assert_eq!(plan["refused"]["nearest"]["renew_every_ms"], 849);
    let names: Vec<&str> = plan["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["short-ttl", "ttl-below-renewals"]);
}

/// Whether every element that begins also ends, in order; attributes have no angle brackets.
fn is_well_formed(text: &str) -> bool {
    let mut open = Vec::new();
    for tag in text.split('<').skip(1) {
        let Some((tag, _)) = tag.split_once('>') else { return false };
        let name = tag.split([' ', '/']).find(|word| !word.is_empty()).unwrap_or_default();
        match (tag.starts_with('/'), tag.ends_with('/')) {
            (true, _) if open.pop() != Some(name) => return false,
            (true, _) | (false, true) => {}
            (false, false) => open.push(name),
        }
        if tag.matches('"').count() % 2 != 0 {
            return false;
        }
    }
    open.is_empty()
}

#[test]
fn a_drawing_is_well_formed_and_needs_nothing_but_itself() {
    let stage = Stage::new();
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("plan.svg");
    let path = file.to_str().unwrap();
    stage.good(&["plan", "--ttl", "500ms", "--svg", path]);
    let drawing = std::fs::read_to_string(&file).unwrap();
    assert!(drawing.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"800\""), "{drawing}");
    assert!(is_well_formed(&drawing) && !drawing.contains("href"), "{drawing}");
    assert!(!is_well_formed(&drawing.replacen("</text>", "", 1)));
    // A refused plan is drawn too; what cannot be written is said.
    assert_eq!(stage.say(&["plan", "--renew-every", "5s", "--svg", path]).code, Some(1));
    assert!(std::fs::read_to_string(&file).unwrap().contains("refused: availability"));
    let said = stage.say(&["plan", "--svg", directory.path().to_str().unwrap()]);
    assert_eq!((said.code, said.err.contains("cannot write ")), (Some(1), true), "{said:?}");
}

#[test]
fn presets_are_compared_and_can_be_planned_with() {
    let stage = Stage::new();
    let text = stage.good(&["plan", "--presets"]);
    assert!(text.contains("\nkubernetes  15s  2s  5s  19.4s  yes  yes  "), "{text}");
    assert!(text.contains("\nconsul  30s  7.5s  15s  50s  yes  no  "), "{text}");
    let presets = stage.json(0, &["plan", "--presets"]);
    assert_eq!(presets["presets"].as_array().unwrap().len(), 10);
    assert!(stage.good(&["plan", "--preset", "patroni"]).starts_with("accepted\n"));
    let said = stage.say(&["plan", "--preset", "etcd"]);
    assert!(said.code == Some(1) && said.out.contains("nearest: margin 60ms\n"), "{said:?}");
    let said = stage.say(&["plan", "--preset", "nobody"]);
    assert!(said.code == Some(2) && said.err.contains("there are: intra-dc, cross-region, etcd"), "{said:?}");
}
