//! Several at once.

use super::language::{Language, Task};
use super::stage::Stage;
use super::turns::turns;

#[test]
fn programs_in_two_languages_act_one_at_a_time() {
    let stage = Stage::new();
    let task = Task { ttl_ms: 5_000, pages: 4, work_ms: 100, pause_ms: 0 };
    let started: Vec<_> =
        [0, 1, 0, 1, 0, 1].into_iter().map(|which| stage.start(Language::ALL[which], task)).collect();
    for running in started {
        assert_eq!(running.end(), (Some(0), String::new()), "{}", stage.log());
    }
    let log = stage.log();
    let tokens = turns(&log).unwrap_or_else(|why| panic!("{why}\n{log}"));
    assert_eq!(tokens.len(), 6, "{log}");
    for language in Language::ALL {
        let pages = stage.pages(language);
        assert_eq!(pages.len(), 3 * 4, "{language:?}: {pages:?}");
        assert!(pages.is_sorted(), "{language:?}: {pages:?}");
        assert!(pages.iter().all(|token| tokens.contains(token)), "{language:?}: {pages:?}");
    }
}
