use std::time::Duration;

use clap::Parser;
use leasehold::SessionOptions;
use leasehold_core::planted::{Bug, plant};

use super::*;
use crate::args::{Cli, Command};

fn planned(arguments: &str) -> Plan {
    let cli = Cli::try_parse_from(format!("leasehold plan {arguments}").split_whitespace()).unwrap();
    let Command::Plan(args) = cli.command else { panic!("not a plan") };
    plan_of(&args).unwrap()
}

/// HTTP and gRPC are asked the same in the tests of the server.
#[test]
fn plan_asks_the_judge_that_the_library_asks() {
    let by_library = || {
        let [ttl, every, margin, trip] = [10_000, 3_000, 1_500, 50].map(Duration::from_millis);
        let options = SessionOptions::new().ttl(ttl).renew_every(every).margin(margin).round_trip(trip);
        options.numbers().err().map(|error| error.to_string())
    };
    let by_plan = || planned("--ttl 10s --renew-every 3s --margin 1500ms --rtt 50ms");
    assert_eq!((by_library(), by_plan().is_accepted()), (None, true));
    let _planted = plant(Bug::StrictNumbers);
    let refused = by_library().unwrap();
    assert!(refused.starts_with("margin of 1500 ms is below"), "{refused}");
    let printed = text::verdict(&by_plan(), None);
    assert!(printed.lines().next().unwrap().ends_with(&format!("does not hold: {refused}")), "{printed}");
}

#[test]
fn lengths_are_shown_as_they_can_be_given_again() {
    for (millis, text) in [
        (0, "0s"),
        (999, "999ms"),
        (1_000, "1s"),
        (3_333, "3.333s"),
        (20_100, "20.1s"),
        (90_000, "90s"),
        (300_000, "5m"),
        (86_400_000, "24h"),
    ] {
        assert_eq!(exact(Millis::new(millis)), text);
        let again = humantime::parse_duration(text).unwrap();
        assert_eq!(Millis::from_duration(again), Millis::new(millis));
    }
}

#[test]
fn a_bound_is_never_shorter_than_it_was_given() {
    assert_eq!(planned("--rtt 0.5ms").round_trip, Millis::new(1));
    assert_eq!(planned("--ttl 10s --margin 1000.9ms").margin, Millis::new(1_000));
}

#[test]
fn the_command_for_the_nearest_numbers_is_accepted_and_asks_for_them() {
    for refused in [
        "--ttl 10s --renew-every 5s",
        "--margin 0s --in-flight 500ms --grace 3s --delay 1s",
        "--ttl 1s --rtt 300ms --pause 2s",
        "--ttl 30s --schedule halves --drift 20% --clock-bound 7s",
        "--ttl 20m --schedule fixed",
        "--ttl 10m --pause 20m --max-ttl 2h",
        "--preset etcd",
        "--preset chubby",
        "--preset dhcp",
    ] {
        let plan = planned(refused);
        assert!(!plan.is_accepted(), "{refused}");
        let (ask, _) = nearest(plan.ask).unwrap();
        let command = again::command(&ask, &plan.policies);
        let again = planned(command.strip_prefix("leasehold plan ").unwrap());
        assert!(again.is_accepted(), "{refused}: {command}");
        assert_eq!((again.ask, again.policies.grace), (ask, plan.policies.grace), "{command}");
    }
}

fn told(arguments: &str) -> String {
    let cli = Cli::try_parse_from(format!("leasehold plan {arguments}").split_whitespace()).unwrap();
    let Command::Plan(args) = cli.command else { panic!("not a plan") };
    let plan = plan_of(&args).unwrap();
    text::report(&Console::new(false), &plan, closest(&plan).as_ref(), args.leases, args.preset)
}

/// There to find: two gaps of one system, and no word why they differ.
#[test]
fn the_numbers_of_another_system_are_told_with_what_they_come_to_there() {
    let note = "note: these are numbers of consul, judged as leases of this system; by its own rules nobody holds a name for up to 50s \
                after a holder died\n";
    assert!(told("--preset consul").contains(note), "{}", told("--preset consul"));
    assert!(!told("--preset intra-dc").contains("note: ") && !told("").contains("note: "));
}

/// There to find: a flood of renewals that is proposed without a word.
#[test]
fn nearest_numbers_that_are_renewed_very_often_are_warned_of() {
    let said = told("--in-flight 290s");
    assert!(
        said.contains(
            "\n  warning: more than 10 renewals in a ttl, because no ttl up to 5m leaves room for fewer: "
        ),
        "{said}"
    );
    assert!(said.contains("= 6.766s < 10s - 290.01s = -280.01s: does not hold"), "{said}");
    assert!(!told("--ttl 10s --renew-every 5s").contains("more than 10 renewals"));
}

#[test]
fn what_is_given_goes_before_a_preset() {
    let plan = planned("--preset kubernetes --ttl 20s");
    assert_eq!(
        (plan.ttl, plan.renew_every, plan.margin),
        (Millis::new(20_000), Millis::new(2_000), Millis::new(5_000))
    );
}

#[test]
fn rates_and_sizes_have_no_more_places_than_tell_something() {
    assert_eq!([0, 333, 3_334, 333_444].map(text::rate), ["0.000", "0.333", "3.3", "333"]);
    assert_eq!([999, 1_555, 460_800_000].map(text::bytes), ["999 B", "1.5 kB", "460 MB"]);
}

#[test]
fn a_timeline_shows_everything_in_the_order_of_time() {
    let lines = timeline::draw(&planned("--ttl 30s --drift 20% --in-flight 1s"), false);
    let names: Vec<&str> = lines.iter().map(|line| line[..15].trim_end()).collect();
    let expected = ["sent", "holder acts", "renewal", "2nd attempt", "margin", "deadline", "ttl", "overdue"];
    assert_eq!(names, expected);
    // 23 of 45 s in 48 columns, and 7 s of margin behind it.
    assert!(lines[1].ends_with(&"=".repeat(24)) && !lines[1].contains(&"=".repeat(25)), "{}", lines[1]);
    assert!(lines[4].ends_with(&format!("{}########", " ".repeat(24))), "{}", lines[4]);
    assert!(lines.iter().all(|line| line.is_ascii() && line.len() <= 78), "{lines:?}");
    assert!(timeline::draw(&planned(""), true).iter().any(|line| !line.is_ascii()));
    let late = timeline::draw(&planned("--renew-every 1h"), false);
    assert!(late.last().unwrap().ends_with("after the end"), "{late:?}");
}

/// Every label of a drawing with its place and an estimate of its end.
fn labels(drawing: &str) -> Vec<(f64, f64, f64)> {
    let attribute = |tag: &str, name: &str| -> f64 {
        tag.split_once(&format!(" {name}=\"")).unwrap().1.split('"').next().unwrap().parse().unwrap()
    };
    let texts = drawing.split("<text").skip(1).filter(|text| text.contains("<tspan"));
    let length = |text: &str| {
        let inner = text.split_once('>').unwrap().1.split("</text>").next().unwrap();
        let plain: String = inner.replace("<tspan font-weight=\"600\">", "").replace("</tspan>", "");
        plain.chars().count() as f64 * 7.0
    };
    texts
        .map(|text| (attribute(text, "x"), attribute(text, "y"), attribute(text, "x") + length(text)))
        .collect()
}

#[test]
fn no_two_labels_of_a_drawing_overlap_and_none_leaves_it() {
    for arguments in [
        "--ttl 500ms",
        "",
        "--ttl 30s --drift 20% --in-flight 1s",
        "--ttl 5m",
        "--ttl 1m --schedule halves",
        "--ttl 5m --renew-every 10ms",
        "--ttl 10s --margin 0s --renew-every 5s",
        "--ttl 24h --max-ttl 24h --drift 50%",
    ] {
        let labels = labels(&svg::draw(&planned(arguments)));
        assert_eq!(labels.len(), 6, "{arguments}");
        for (index, one) in labels.iter().enumerate() {
            assert!(one.2 <= 800.0 && one.1 > 60.0, "{arguments}: {one:?}");
            for other in &labels[index + 1..] {
                let apart = (one.1 - other.1).abs() >= 16.0 || one.2 < other.0 || other.2 < one.0;
                assert!(apart, "{arguments}: {one:?} {other:?}");
            }
        }
    }
}

#[test]
fn a_drawing_says_what_was_refused_in_escaped_text() {
    let drawing = svg::draw(&planned("--renew-every 5s"));
    assert!(drawing.contains("refused: availability does not hold"));
    assert!(drawing.contains("2 x 5s + 100ms = 10.1s &lt; 10s - 1s = 9s: does not hold"));
}
