//! The checker: from the lines that all programs wrote into one file, whether they acted one at a time.

/// The tokens of all turns, in order, if no turn began before the last one was over and every token is greater than those before.
pub(crate) fn turns(log: &str) -> Result<Vec<u64>, String> {
    let (mut acting, mut all) = (None, Vec::new());
    for line in log.lines() {
        let (what, token) = read(line).ok_or_else(|| format!("not understood: {line}"))?;
        match (what, acting) {
            ("acquired", None) if all.last().is_none_or(|last| *last < token) => {
                acting = Some(token);
                all.push(token);
            }
            ("acquired", None) => return Err(format!("a token that is not greater than all before: {line}")),
            ("wrote" | "asked", Some(present)) if present == token => {}
            ("releasing", Some(present)) if present == token => acting = None,
            _ => return Err(format!("out of turn while {acting:?} acts: {line}")),
        }
    }
    acting.map_or(Ok(all), |token| Err(format!("token {token} did not say that its turn is over")))
}

/// What a line says, and of which token.
pub(crate) fn read(line: &str) -> Option<(&str, u64)> {
    let (what, rest) = line.split_once(" token ")?;
    let digits = rest.split([' ', ':']).next()?;
    Some((what, digits.parse().ok()?))
}

#[test]
fn turns_one_after_the_other_are_good() {
    let log = "acquired token 2\nwrote token 2 page 1\nreleasing token 2\nacquired token 5\nasked token 5\nreleasing token 5\n";
    assert_eq!(turns(log), Ok(vec![2, 5]));
}

#[test]
fn every_way_to_act_out_of_turn_is_found() {
    for bad in [
        "acquired token 2\nacquired token 3\nreleasing token 2\nreleasing token 3\n",
        "acquired token 2\nwrote token 1 page 1\nreleasing token 2\n",
        "acquired token 2\nreleasing token 2\nwrote token 2 page 2\n",
        "acquired token 2\nreleasing token 2\nacquired token 2\nreleasing token 2\n",
        "acquired token 3\nreleasing token 3\nacquired token 2\nreleasing token 2\n",
        "acquired token 2\nlost token 2: why\n",
        "acquired token 2\n",
        "Traceback (most recent call last):\n",
    ] {
        assert!(turns(bad).is_err(), "{bad}");
    }
}
